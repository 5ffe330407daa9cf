package line

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// show writes what a line means in one string.
func show(p *Parser, text string) string {
	var l Line
	if r := p.Parse(&l, []byte(text)); r != OK {
		return r.String()
	}
	switch l.Kind {
	case KindBlank:
		return "blank"
	case KindEvent:
		n, r := p.ParseEvent(&l)
		if r != OK {
			return r.String()
		}
		return fmt.Sprintf("event %+v", n)
	case KindServiceCheck:
		s, r := p.ParseServiceCheck(&l)
		if r != OK {
			return r.String()
		}
		return fmt.Sprintf("check %+v", s)
	}
	if r := p.Identify(&l); r != OK { // a second time, which changes nothing
		return "identified again: " + r.String()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%q", l.Name)
	for _, t := range l.Tags {
		fmt.Fprintf(&b, " %q=%q", t.Key, t.Value)
	}
	for _, s := range l.Samples {
		fmt.Fprintf(&b, " %v", s.Type)
		if s.Rate != 1 {
			fmt.Fprintf(&b, "@%v", s.Rate)
		}
		if s.Type == Set {
			fmt.Fprintf(&b, " %q", s.Text)
		}
		for _, v := range l.Values[s.From:s.To] {
			if v.Signed {
				fmt.Fprintf(&b, " %+g", v.Number)
			} else {
				fmt.Fprintf(&b, " %v", v.Number)
			}
		}
	}
	if l.TagErrors > 0 {
		fmt.Fprintf(&b, " tagerrors=%d", l.TagErrors)
	}
	if l.Unknown > 0 {
		fmt.Fprintf(&b, " unknown=%d", l.Unknown)
	}
	return b.String()
}

// lineTests holds lines with their expected parts. They seed the fuzzing.
var lineTests = []struct{ in, want string }{
	// Every kind of value, tag and option.
	{"cart.items:1|c", `"cart.items" c 1`},
	{"cart.items:3|c|@0.1", `"cart.items" c@0.1 3`},
	{"rt:12.5:13:900|ms|#route:/a,canary", `"rt" "canary"="" "route"="/a" ms 12.5 13 900`},
	{"q:5|g", `"q" g 5`},
	{"q:-2|g", `"q" g -2`},
	{"q:+4|g", `"q" g +4`},
	{"u:anna:x|s", `"u" s "anna:x"`},
	{"rt:1|ms:2|ms|@0.5:7|c", `"rt" ms 1 ms@0.5 2 c 7`},
	{"a:u|s:3:4|c:v|s:5|g", `"a" s "u" c 3 4 s "v" g 5`},
	{"a:u|s:x|c", "bad_value"},
	{"a:u|s:|s", "empty_value"},
	{"hits,zone=eu:1|c|#a:b", "mixed_tag_styles"},
	{"hits,zone:1|c|#a:b", `"hits" "a"="b" c 1 tagerrors=1`},
	{"hits,zone=eu:1|c|#:b", `"hits" "zone"="eu" c 1 tagerrors=1`},
	{"hits,zone=eu:1|c|#,", `"hits" "zone"="eu" c 1`},
	{"x:1|c|T1700000000|c:ci-abc", `"x" c 1`},
	{"x:1e3|c", `"x" c 1000`},
	{"x:0x10|c", "bad_value"},
	{"x:1|c\r", `"x" c 1`},

	// What clients send that others refuse or misread.
	{"a:1:2|c", `"a" c 1 2`},
	{"a:1:2|g", `"a" g 1 2`},
	{"a:1:2:3|ms", `"a" ms 1 2 3`},
	{"a:0.5:0|ms", `"a" ms 0.5 0`},
	{"a:1|c:2|c", `"a" c 1 c 2`},
	{"a:-1|c", "negative_counter"},
	{"a:-0|c", `"a" c +0`},
	{"a:-0.0e5|c", `"a" c +0`},
	{"a:-1e-999|c", `"a" c +0`},
	{"a:-1|ms", "negative_timer"},
	{"a:-1|h", `"a" h -1`},
	{"a:-1|d", `"a" d -1`},
	{"a:nan|c", "not_finite"},
	{"a:inf|g", "not_finite"},
	{"a:-InFiNiTy|g", "not_finite"},
	{"a:+NaN|h", "not_finite"},
	{"a:1e309|h", "not_finite"},
	{"a:1e-400|h", `"a" h 0`},
	{"a:0x10|c", "bad_value"},
	{"a:0x1p4|c", "bad_value"},
	{"a:1|h", `"a" h 1`},
	{"a:1|d", `"a" d 1`},
	{"a:1|c|T1700000000", `"a" c 1`},
	{"a:1|c|T", `"a" c 1 unknown=1`},
	{"a:1|c|T17x", `"a" c 1 unknown=1`},
	{"n;t=b:1|c", `"n" "t"="b" c 1`},
	{"a:1_000|c", "bad_value"},
	{"a: 1|c", "bad_value"},
	{"a:1 |c", "bad_value"},
	{"a:1e|c", "bad_value"},
	{"a:1e+|c", "bad_value"},
	{"a:e1|c", "bad_value"},
	{"a:.|c", "bad_value"},
	{"a:+|g", "bad_value"},
	{"a:--1|g", "bad_value"},
	{"a:infinit|g", "bad_value"},
	{"a:5.|c", `"a" c 5`},
	{"a:.5|c", `"a" c 0.5`},
	{"a:+1.5E+1|h", `"a" h +15`},
	{"a:0.29|h", `"a" h 0.29`},
	{"a:123456789012345.6|h", `"a" h 1.234567890123456e+14`},
	{"a:913.0789220613887|h", `"a" h 913.0789220613887`}, // its digits divided by 10^13 are another number
	{"a:8890668.64359263965|h", `"a" h 8.890668643592639e+06`},
	{"a:.000000000000123|h", `"a" h 1.23e-13`},
	{"a:9007199254740992|c", `"a" c 9.007199254740992e+15`},
	{"a:9007199254740993|c", `"a" c 9.007199254740992e+15`},
	{"a:9007199254740994|c", "out_of_range"},
	{"a:9007199255|c|@0.000001", "out_of_range"},
	{"a:4|c|@2", "bad_sample_rate"},
	{"a:4|ms|@2", "bad_sample_rate"},
	{"a:4|c|@0", "bad_sample_rate"},
	{"a:4|g|@0", "bad_sample_rate"},
	{"a:4|s|@-1", "bad_sample_rate"},
	{"a:4|c|@", "bad_sample_rate"},
	{"a:4|c|@inf", "bad_sample_rate"},
	{"a:4|c|@ 0.5", "bad_sample_rate"},
	{"a:4|c|@0.0000009", "bad_sample_rate"},
	{"a:4|c|@1.0000001", "bad_sample_rate"},
	{"a:4|c|@0.000001", `"a" c@1e-06 4`},
	{"a:4|c|@+1", `"a" c 4`},
	{"a:4|c|@0.5|@0.1", `"a" c@0.1 4`},
	{"a:4|c|@7|@0.1", "bad_sample_rate"},
	{"a:1|ms|@0.3", `"a" ms@0.3 1`},
	{"a:1|q", "bad_type"},
	{"a:1|MS", "bad_type"},
	{"a:1|C", "bad_type"},
	{"a:x|s", `"a" s "x"`},
	{"a:1|c|c:id", `"a" c 1`},
	{"a:1|c|#t:b|c:id", `"a" "t"="b" c 1`},
	{"a:1|c|e:x", `"a" c 1`},
	{"a:1|c|card:low", `"a" c 1`},
	{"a:1|c|whatever|e:", `"a" c 1 unknown=1`},
	{"a:1|c|", `"a" c 1`},
	{"a:1|c|||", `"a" c 1`},
	{"a:1|c|#x", `"a" "x"="" c 1`},
	{"a:1|c|#x:", `"a" "x"="" c 1`},
	{"a:1|c|#:x", `"a" c 1 tagerrors=1`},
	{"a:1|c|#t:1,t:2", `"a" "t"="2" c 1`},
	{"a:1|c|#a:b,#c:d", `"a" "a"="b" "c"="d" c 1`},
	{"a:1|c|##a:b", `"a" "a"="b" c 1`},
	{"a:1|c|###a:b", `"a" "#a"="b" c 1`},
	{"a:1|c|# a : b ,c", `"a" " a "=" b " "c"="" c 1`},
	{"a:1|c|#,,a:b,", `"a" "a"="b" c 1`},
	{"a:1|c|#b:1|#a:2", `"a" "a"="2" "b"="1" c 1`},
	{"a:1|c|#u:http://x/", `"a" "u"="http://x/" c 1`},
	{"n,t=b:1|c", `"n" "t"="b" c 1`},
	{"n#t=b:1|c", `"n" "t"="b" c 1`},
	{"n[t=b]:1|c", `"n" "t"="b" c 1`},
	{"n;t=b;u=c:1|c", `"n" "t"="b" "u"="c" c 1`},
	{"n;t=b,u=c:1|c", `"n" "t"="b,u=c" c 1`},
	{"foo.[a=b]bar:1|c", `"foo.bar" "a"="b" c 1`},
	{"n[t=b:c]m:1|c", `"nm" "t"="b:c" c 1`},
	{"n[t=b:c]:1|c", `"n" "t"="b:c" c 1`},
	{"n[:1|c", `"n[" c 1`},
	{"n]:1|c", `"n]" c 1`},
	{"n][,a=b:1|c", `"n][,a=b" c 1`},
	{"n[,a=b:1|c", `"n[,a=b" c 1`},
	{"n],a=b:1|c", `"n],a=b" c 1`},
	{"[a=b:c]n:1|c", `"n" "a"="b:c" c 1`},
	{"n[:1|c|x]", `"n[" c 1 unknown=1`},
	{"n[]:1|c", `"n" c 1`},
	{"[a=b]:1|c", "empty_name"},
	{"n[a=b]|c", "missing_colon"},
	{"n[a:b]1|c", "missing_colon"},
	{"n,:1|c", `"n" c 1`},
	{"n,,:1|c", `"n" c 1 tagerrors=2`},
	{"n,a=,=b,c,d=e=f:1|c", `"n" "d"="e=f" c 1 tagerrors=3`},
	{"n,a=1,a=2:1|c", `"n" "a"="2" c 1`},
	{",a=b:1|c", "empty_name"},
	{":1|c", "empty_name"},
	{"_x:1|c", `"_x" c 1`},
	{"_foo:1|c", `"_foo" c 1`},
	{"_scheduler.x:1|c", `"_scheduler.x" c 1`},
	{"  a:1|c", `"a" c 1`},
	{"\ta:1|c \t\r", `"a" c 1`},
	{"a:1|c\r ", "bad_type"},
	{"a b:1|c", `"a b" c 1`},
	{"a\x01b\x7f:1|c|#k\x1f:v\x00", `"a_b_" "k_"="v_" c 1`},
	{"a.:1|c", `"a" c 1`},
	{"...:1|c", "empty_name"},
	{".a..b:1|c", `".a..b" c 1`},
	{"a\xff:1|c", "invalid_utf8"},
	{"a:1|c|#t:\xff", "invalid_utf8"},
	{"a:\xc0\x80|s", "invalid_utf8"},
	{"é:1|c|#ü:ö", `"é" "ü"="ö" c 1`},

	// Structure.
	{"", "blank"},
	{" \t", "blank"},
	{"\r", "blank"},
	{"\r\r", "missing_colon"},
	{"a", "missing_colon"},
	{"a|b:1|c", "missing_colon"},
	{"a:1", "missing_pipe"},
	{":", "empty_name"},
	{"a:", "missing_pipe"},
	{"a:1|", "bad_type"},
	{"a:x|zz", "bad_type"},
	{"a:|c", "empty_value"},
	{"a:::|c", "empty_value"},
	{"a:|s", "empty_value"},
	{"a::|s", `"a" s ":"`},
	{"a::1::2:|c", `"a" c 1 2`},
	{"a:1|c:", "missing_pipe"},
	{"a:1|c:2", "missing_pipe"},
	{"a:1|c|@0.5:", "missing_pipe"},
	{"a:1|c|@0.5:2", "missing_pipe"},
	{"a:1|zz:2", "bad_type"},
	{"a:1|c|@9:2", "bad_sample_rate"},
	{"a:1|c:|c", "empty_value"},
	{"a:1|c:2|", "bad_type"},
	{"a:1|c:2|#a", "bad_type"},
	{"a:1|c|@0.5:2|g|@0.1:3:4|s|#k:v", `"a" "k"="v" c@0.5 1 g@0.1 2 s "3:4"`},

	// Events and service checks.
	{"_e{5,4}:title|text", `event {Title:title Text:text Time:0 Host: Key: Priority:normal Source: Alert:info Tags:[] Unknown:0}`},
	{"_e{9,10}:title 890|text 67890", `event {Title:title 890 Text:text 67890 Time:0 Host: Key: Priority:normal Source: Alert:info Tags:[] Unknown:0}`},
	{"_e{2,0}:ab|", `event {Title:ab Text: Time:0 Host: Key: Priority:normal Source: Alert:info Tags:[] Unknown:0}`},
	{`_e{4,6}:a\nb|c|\nde|d:17|h:web|k:agg|p:low|s:src|t:error|#b,a:1|c:x|e:y|card:z`,
		"event {Title:a\nb Text:c|\nde Time:17 Host:web Key:agg Priority:low Source:src Alert:error Tags:[a:1 b] Unknown:0}"},
	{"_e{2,2}:é|ab|d:x|p:high|t:fatal", `event {Title:é Text:ab Time:0 Host: Key: Priority:normal Source: Alert:info Tags:[] Unknown:0}`},
	{"_e{2,1}:ab|c|t:success", `event {Title:ab Text:c Time:0 Host: Key: Priority:normal Source: Alert:success Tags:[] Unknown:0}`},
	{"_e{2,1}:ab|c|h:a\x1fb|k:c\x7fd|s:\x00", `event {Title:ab Text:c Time:0 Host:a_b Key:c_d Priority:normal Source:_ Alert:info Tags:[] Unknown:0}`},
	{"_e{0,4}:|text", "bad_event"},
	{"_e{5,9}:title|text", "bad_event"},
	{"_e{5,3}:title|text", "bad_event"},
	{"_e{4,4}:title|text", "bad_event"},
	{"_e{5,4}title|text", "bad_event"},
	{"_e{5}:title|text", "bad_event"},
	{"_e{,4}:title|text", "bad_event"},
	{"_e{-5,4}:title|text", "bad_event"},
	{"_e{5,4:title|text", "bad_event"},
	{"_e{5", "bad_event"},
	{"_e{", "bad_event"},
	{"_e{99999999999999999999,4}:title|text", "bad_event"},
	{"_e{5,99999999999999999999}:title|text", "bad_event"},
	{"_e:1|c", `"_e" c 1`},
	{"_sc|db|2", `check {Name:db Status:2 Time:0 Host: Message: Tags:[] Unknown:0}`},
	{`_sc|db|0|d:5|h:web|#r:eu,x|m:a\nb m\: c|c:ci-1|e:x`, "check {Name:db Status:0 Time:5 Host:web Message:a\nb m: c Tags:[r:eu x] Unknown:0}"},
	{"_sc|a\x02b|3|h:c\x03", `check {Name:a_b Status:3 Time:0 Host:c_ Message: Tags:[] Unknown:0}`},
	{"_sc|db", "bad_service_check"},
	{"_sc||1", "bad_service_check"},
	{"_sc|db|4", "bad_service_check"},
	{"_sc|db|", "bad_service_check"},
	{"_sc|db|00", "bad_service_check"},
	{"_sc|", "bad_service_check"},
	{"_sc:1|c", `"_sc" c 1`},
}

func TestLines(t *testing.T) {
	p := New(Config{})
	for _, tt := range lineTests {
		if got := show(p, tt.in); got != tt.want {
			t.Errorf("%q\n got %s\nwant %s", tt.in, got, tt.want)
		}
	}
}

// TestNoLineBreakIsLeft: no control character and no line separator gets into a
// name or a tag, and their neighbors stay.
func TestNoLineBreakIsLeft(t *testing.T) {
	p := New(Config{})
	for c := range rune(0x202b) {
		shown := string(c)
		switch {
		case c == '\n', c >= ' ' && c < 0x7f, c > 0xa0 && c < 0x2027:
			continue // ends the line, means something else, or is like any other letter
		case c != 0xa0 && c != 0x2027 && c != 0x202a:
			shown = "_"
		}
		for form, want := range map[string]string{
			"a?b:1|c|#k?l:v?w":    `"a?b" "k?l"="v?w" c 1`,
			"a?b[k?l=v?w]:1|c":    `"a?b" "k?l"="v?w" c 1`,
			"a?b,k?l=v?w:1|c":     `"a?b" "k?l"="v?w" c 1`,
			"é?b:1|c|#k?l:v?é":    `"é?b" "k?l"="v?é" c 1`,
			"_sc|a?b|0|h:?é?|#?k": "check {Name:a?b Status:0 Time:0 Host:?é? Message: Tags:[?k] Unknown:0}",
		} {
			text := strings.ReplaceAll(form, "?", string(c))
			quoted := shown
			if want[0] == '"' {
				quoted = strings.Trim(strconv.Quote(shown), `"`)
			}
			if got, want := show(p, text), strings.ReplaceAll(want, "?", quoted); got != want {
				t.Errorf("%q: got %s, want %s", text, got, want)
			}
		}
	}
}

func TestLimits(t *testing.T) {
	rep := strings.Repeat
	tags := func(n int) string {
		var s []string
		for i := range n {
			s = append(s, fmt.Sprintf("k%d:v", i))
		}
		return strings.Join(s, ",")
	}
	p := New(Config{})
	for _, tt := range []struct {
		name, in string
		want     Reason
	}{
		{"line-max", "a:" + rep("x", 8192-4) + "|s", OK},
		{"line-over", "a:" + rep("x", 8192-3) + "|s", LineTooLong},
		{"line-max-trimmed", "  a:" + rep("x", 8192-4) + "|s \r", OK},
		{"name-max", rep("a", 1024) + ":1|c", OK},
		{"name-over", rep("a", 1025) + ":1|c", NameTooLong},
		{"name-without-tags", rep("a", 1024) + ",k=v:1|c", OK},
		{"segments-max", rep("a.", 31) + "a:1|c", OK},
		{"segments-over", rep("a.", 32) + "a:1|c", TooManySegments},
		{"tags-max", "a:1|c|#" + tags(32), OK},
		{"tags-over", "a:1|c|#" + tags(33), TooManyTags},
		{"tags-same", "a:1|c|#" + tags(32) + "," + tags(32), OK},
		{"key-max", "a:1|c|#" + rep("k", 128), OK},
		{"key-over", "a:1|c|#" + rep("k", 129), TagTooLong},
		{"value-max", "a:1|c|#k:" + rep("v", 512), OK},
		{"value-over", "a:1|c|#k:" + rep("v", 513), TagTooLong},
		{"value-over-replaced", "a:1|c|#k:" + rep("v", 513) + ",k:v", OK},
	} {
		var l Line
		if got := p.Parse(&l, []byte(tt.in)); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
	if got := New(Config{Tags: 2}).Parse(new(Line), []byte("a:1|c|#x,y,z")); got != TooManyTags {
		t.Errorf("limit of 2 tags: got %v", got)
	}
	if got := New(Config{Tags: -1}).Parse(new(Line), []byte("a:1|c|#"+tags(500))); got != OK {
		t.Errorf("no limit of tags: got %v", got)
	}
}

// TestPrecedence breaks two neighboring rules at a time: the earlier one is
// the reason.
func TestPrecedence(t *testing.T) {
	rep := strings.Repeat
	long, dots := rep("n", 1025), rep("a.", 32)+"a"
	var many []string
	for i := range 33 {
		many = append(many, fmt.Sprint("k", i))
	}
	manyTags := strings.Join(many, ",")
	p := New(Config{})
	for _, tt := range []struct {
		first, second Reason
		in            string
	}{
		{LineTooLong, InvalidUTF8, rep("\xff", 8193)},
		{InvalidUTF8, BadEvent, "_e{\xff"},
		{InvalidUTF8, BadServiceCheck, "_sc|\xff"},
		{InvalidUTF8, MissingColon, "a\xff"},
		{BadEvent, MissingColon, "_e{1"},
		{BadServiceCheck, MissingColon, "_sc|x"},
		{MissingColon, EmptyName, "|:1|c"},
		{EmptyName, MissingPipe, ":1"},
		{MissingPipe, NameTooLong, long + ":1"},
		{MissingPipe, EmptyName, ",a=b:1"},
		{EmptyName, BadType, ",a=b:1|zz"},
		{NameTooLong, TooManySegments, rep("a.", 600) + "a:1|c"},
		{NameTooLong, BadType, long + ":1|zz"},
		{TooManySegments, BadType, dots + ":1|zz"},
		{TooManySegments, BadSampleRate, dots + ":1|c|@7"},
		{BadType, BadSampleRate, "a:1|zz|@7"},
		{BadSampleRate, BadType, "a:1|c|@7:1|zz"},
		{BadSampleRate, MissingPipe, "a:1|c|@7:1"},
		{BadType, MissingPipe, "a:1|zz:1"},
		{BadType, MixedTagStyles, "a,b=c:1|zz|#d:e"},
		{BadSampleRate, MixedTagStyles, "a,b=c:1|c|@7|#d:e"},
		{MissingPipe, MixedTagStyles, "a,b=c:1|c|#d:e|@1:1"},
		{MixedTagStyles, TooManyTags, "a,b=c:1|c|#" + manyTags},
		{MixedTagStyles, TagTooLong, "a,b=c:1|c|#" + rep("k", 129)},
		{TooManyTags, TagTooLong, "a:1|c|#" + manyTags + "," + rep("k", 129)},
		{TooManyTags, TagTooLong, "a:1|c|#" + rep("k", 129) + "," + manyTags},
		{TooManyTags, EmptyValue, "a:|c|#" + manyTags},
		{TagTooLong, BadValue, "a:x|c|#" + rep("k", 129)},
		{EmptyValue, BadValue, "a:|c:x|c"},
		{BadValue, EmptyValue, "a:x|c:|c"},
		{NotFinite, BadValue, "a:nan:x|c"},
		{BadValue, NotFinite, "a:x:nan|c"},
		{NegativeCounter, NotFinite, "a:-1:nan|c"},
		{OutOfRange, NegativeCounter, "a:1e300:-1|c"},
		{NegativeTimer, NotFinite, "a:-1|ms:inf|g"},
	} {
		want := tt.first.String()
		if got := show(p, tt.in); got != want {
			t.Errorf("%v before %v: %.60q: got %v", tt.first, tt.second, tt.in, got)
		}
	}
}

// TestTagsOfEvents: they are no series, so that tags beyond the limit and
// malformed ones cost the event nothing else.
func TestTagsOfEvents(t *testing.T) {
	p := New(Config{Tags: 2})
	var l Line
	for _, in := range []string{"_e{1,1}:a|b|#d,:x,a:1,c|#a:2", "_sc|a|0|#d,:x,a:1,c|#a:2"} {
		for range 2 {
			if r := p.Parse(&l, []byte(in)); r != OK {
				t.Fatal(r)
			}
			var tags []string
			if l.Kind == KindEvent {
				n, _ := p.ParseEvent(&l)
				tags = n.Tags
			} else {
				s, _ := p.ParseServiceCheck(&l)
				tags = s.Tags
			}
			if !slices.Equal(tags, []string{"a:1", "d"}) || l.TagErrors != 1 {
				t.Errorf("%q: tags %q, %d errors", in, tags, l.TagErrors)
			}
		}
	}
}

func TestStylesOff(t *testing.T) {
	for _, tt := range []struct {
		off      Styles
		in, want string
	}{
		{DogStatsD, "a,b=c:1|c|#d:e", `"a" "b"="c" c 1 unknown=1`},
		{Librato, "a#b=c:1|c", `"a#b=c" c 1`},
		{Librato, "a#b,c=d:1|c", `"a#b" "c"="d" c 1`},
		{Influx, "a,b=c:1|c", `"a,b=c" c 1`},
		{Graphite, "a;b=c:1|c", `"a;b=c" c 1`},
		{SignalFX, "a[b=c]d:1|c", `"a[b=c]d" c 1`},
		{SignalFX, "a[b:1|c]:1|c", "bad_type"},
		{SignalFX, "a[b,c=d]:1|c", `"a[b" "c"="d]" c 1`},
		{SignalFX | Librato | Influx | Graphite, "a[#,;=]:1|c", `"a[#,;=]" c 1`},
		{DogStatsD, "_sc|a|0|#x", `check {Name:a Status:0 Time:0 Host: Message: Tags:[x] Unknown:0}`},
		{DogStatsD, "_e{1,1}:a|b|#x", `event {Title:a Text:b Time:0 Host: Key: Priority:normal Source: Alert:info Tags:[x] Unknown:0}`},
	} {
		if got := show(New(Config{Off: tt.off}), tt.in); got != tt.want {
			t.Errorf("off %05b: %q\n got %s\nwant %s", tt.off, tt.in, got, tt.want)
		}
	}
}

func TestContainerTag(t *testing.T) {
	p := New(Config{TagContainer: true})
	for _, tt := range []struct{ in, want string }{
		{"a:1|c|c:ci-abc", `"a" "container_id"="abc" c 1`},
		{"a:1|c|c:cid-abc", `"a" "container_id"="abc" c 1`},
		{"a:1|c|c:in-42", `"a" "container_id"="in-42" c 1`},
		{"a,k=v:1|c|c:x", `"a" "container_id"="x" "k"="v" c 1`},
		{"a:1|c|c:x|#container_id:y", `"a" "container_id"="x" c 1`},
		{"a:1|c|c:", `"a" c 1 tagerrors=1`},
	} {
		if got := show(p, tt.in); got != tt.want {
			t.Errorf("%q\n got %s\nwant %s", tt.in, got, tt.want)
		}
	}
}

// TestInvalidBytesEverywhere has one invalid byte at each place of a line, whose others are
// looked at in words of eight.
func TestInvalidBytesEverywhere(t *testing.T) {
	p := New(Config{})
	valid := []byte("requests.of.all.kinds:1|c|#zone:b")
	for _, b := range []byte{0x80, 0xc3, 0xff} {
		for at := range valid {
			in := bytes.Clone(valid)
			in[at] = b
			var l Line
			if r := p.Parse(&l, in); r != InvalidUTF8 || l.At != at {
				t.Errorf("%q: %v at %d, want %v at %d", in, r, l.At, InvalidUTF8, at)
			}
		}
	}
}

func TestStopOffset(t *testing.T) {
	p := New(Config{})
	for _, tt := range []struct {
		in   string
		want int // in the trimmed line
	}{
		{"abc", 3},
		{"a|b:1|c", 1},
		{"a\xff:1|c", 1},
		{"ab:1|zz", 5},
		{"ab:1|c|@7", 7},
		{"  ab:1:x|c", 5},
		{"ab:1|c:nan|g", 7},
		{"ab:|c", 3},
	} {
		var l Line
		r := p.Parse(&l, []byte(tt.in))
		if r == OK || l.At != tt.want {
			t.Errorf("%q: %v at %d, want %d", tt.in, r, l.At, tt.want)
		}
	}
}

func TestReasonNames(t *testing.T) {
	seen := map[string]bool{}
	for r := range Reasons {
		s := Reason(r).String()
		if s == "" || s == "unknown" || seen[s] {
			t.Errorf("reason %d has the name %q", r, s)
		}
		seen[s] = true
	}
	if got := Reason(Reasons).String(); got != "unknown" {
		t.Errorf("reason out of range: %q", got)
	}
}

// checkLine compares the parser with the reference.
func checkLine(t *testing.T, cfg Config, text string) {
	t.Helper()
	p := New(cfg)
	var l Line
	// What a line before it left must not show.
	if r := New(Config{TagContainer: true}).Parse(&l, []byte("old,k:1:2|h|@0.5:3|s|#t:v,:x|zz|c:id")); r != OK {
		t.Fatal(r)
	}
	l.SignedCounters = true
	in := []byte(text)
	got := p.Parse(&l, in)
	want, reason := refParse(cfg, text)
	if string(in) != text {
		t.Fatalf("%q was changed to %q", text, in)
	}
	if got.String() != reason {
		t.Fatalf("%q: got %v, reference says %v", text, got, reason)
	}
	var fresh Line
	if p.Parse(&fresh, []byte(text)); parts(l) != parts(fresh) {
		t.Fatalf("%q: a Line used before has %s, a new one %s", text, parts(l), parts(fresh))
	}
	if l.Kind != want.kind && got == OK {
		t.Fatalf("%q: kind %v, reference says %v", text, l.Kind, want.kind)
	}
	if l.At < 0 || l.At > len(l.Text) {
		t.Fatalf("%q: stopped at %d of %d", text, l.At, len(l.Text))
	}
	if got != OK {
		return
	}
	switch l.Kind {
	case KindEvent:
		n, r := p.ParseEvent(&l)
		title, body, ok := refEvent(string(l.Text))
		if (r == OK) != ok || n.Title != title || n.Text != body {
			t.Fatalf("%q: event %q %q %v, reference says %q %q %v", text, n.Title, n.Text, r, title, body, ok)
		}
		return
	case KindServiceCheck:
		s, r := p.ParseServiceCheck(&l)
		name, status, ok := refCheck(string(l.Text))
		if (r == OK) != ok || ok && (s.Name != name || s.Status != status) {
			t.Fatalf("%q: check %q %d %v, reference says %q %d %v", text, s.Name, s.Status, r, name, status, ok)
		}
		return
	case KindBlank:
		return
	}
	var tags []string
	for _, tag := range l.Tags {
		tags = append(tags, string(tag.Key)+"\x00"+string(tag.Value))
	}
	slices.Sort(tags)
	if string(l.Name) != want.name || !slices.Equal(tags, refTags(want.tags)) {
		t.Fatalf("%q: %q %q, reference says %q %q", text, l.Name, tags, want.name, refTags(want.tags))
	}
	if l.Time != want.time {
		t.Fatalf("%q: time %d, reference says %d", text, l.Time, want.time)
	}
	if l.TagErrors != want.tagErrors || l.Unknown != want.unknown {
		t.Fatalf("%q: %d tag errors, %d unknown, reference says %d, %d", text, l.TagErrors, l.Unknown, want.tagErrors, want.unknown)
	}
	if len(l.Samples) != len(want.samples) {
		t.Fatalf("%q: %d samples, reference says %d", text, len(l.Samples), len(want.samples))
	}
	for i, s := range l.Samples {
		w := want.samples[i]
		if s.Type.String() != w.typ || s.Rate != w.rate || string(s.Text) != w.text ||
			!slices.EqualFunc(l.Values[s.From:s.To], w.values, sameValue) {
			t.Fatalf("%q: sample %d is %+v %v, reference says %+v", text, i, s, l.Values[s.From:s.To], w)
		}
	}
}

// parts shows the exported fields of l.
func parts(l Line) string {
	l.fieldsAt, l.buf = 0, nil
	return fmt.Sprintf("%+v", l)
}

func sameValue(a, b Value) bool {
	return math.Float64bits(a.Number) == math.Float64bits(b.Number) && a.Signed == b.Signed
}

func TestLinesAgainstReference(t *testing.T) {
	for off := range Styles(32) {
		for _, tt := range lineTests {
			checkLine(t, Config{Off: off, TagContainer: off&1 != 0}, tt.in)
		}
	}
}

// FuzzLine checks that the parser and the reference agree on any line under
// any choice of styles, whatever the Line held before.
func FuzzLine(f *testing.F) {
	for _, tt := range lineTests {
		f.Add([]byte(tt.in), uint8(0))
		f.Add([]byte(tt.in), uint8(37))
	}
	for _, s := range []string{
		"a]b[c=d]:1|c", "a[]]:1|c", "a[[x=y]:1|c", "a:::::|c", "a:1|c|#le:1,quantile:2,__name__:x",
		"a:1|c|@+1", "a:1|c|@ 1", "a:1|c|@-inf", "a:1|c|@1e-6", "a:1|c|@9.99e-7",
		"\x00a\x01:1\x02|c\x03|#\x04:\x05|@\x06", "a:1|c|#\x7f:\x7f",
	} {
		f.Add([]byte(s), uint8(0))
	}
	f.Fuzz(func(t *testing.T, text []byte, bits uint8) {
		if slices.Contains(text, '\n') {
			return // cut before
		}
		checkLine(t, Config{
			Off: Styles(bits & 31), TagContainer: bits&32 != 0,
			// Small limits, so that they are met.
			LineBytes: 200, NameBytes: 40, Segments: 6, Tags: 3, TagKeyBytes: 8, TagValueBytes: 12,
		}, string(text))
	})
}

func FuzzNumber(f *testing.F) {
	for _, s := range []string{"1", "-0", "12.5", "1e3", ".5", "5.", "1e309", "0.1e-400", "nan", "+Inf", "1_0", "0x1", "999999999999999", "9999999999999999", "0.000000000000001"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, r := parseNumber([]byte(s))
		w := refSample{typ: "h", rate: 1, text: s}
		if s == "" || strings.Contains(s, ":") {
			return
		}
		want := refValues(&w)
		if r.String() != want {
			t.Fatalf("%q: got %v, want %v", s, r, want)
		}
		if r == OK && math.Float64bits(got) != math.Float64bits(w.values[0].Number) {
			t.Fatalf("%q: got %v, want %v", s, got, w.values[0].Number)
		}
	})
}

// TestExporterLines has lines that statsd_exporter reads in another way.
func TestExporterLines(t *testing.T) {
	cfg := Config{Exporter: true, TagContainer: true, AppendKey: func(dst, key []byte) []byte {
		return append(dst, bytes.ReplaceAll(key, []byte("-"), []byte("_"))...)
	}}
	exporter, usual := New(cfg), New(Config{TagContainer: true})
	for _, tt := range []struct{ in, exporter, usual string }{
		{"a..:1|c", `"a.." c 1`, `"a" c 1`},
		{"a:-1|ms", `"a" ms -1`, "negative_timer"},
		{"a:1|c|#b,c:1", `"a" "c"="1" c 1 tagerrors=1`, `"a" "b"="" "c"="1" c 1`},
		{"a:1|c|#,c:1", `"a" "c"="1" c 1 tagerrors=1`, `"a" "c"="1" c 1`},
		{"a:1|c|#x-y:1,x_y:2", `"a" "x_y"="2" c 1`, `"a" "x-y"="1" "x_y"="2" c 1`},
		{"a:1|c|c:ci-z", `"a" "container_id"="ci-z" c 1`, `"a" "container_id"="z" c 1`},
		{"a:1|c|c:cid-z", `"a" "container_id"="cid-z" c 1`, `"a" "container_id"="z" c 1`},
		{"a:1|c|c:in-z", `"a" "container_id"="in-z" c 1`, `"a" "container_id"="in-z" c 1`},
	} {
		if got := show(exporter, tt.in); got != tt.exporter {
			t.Errorf("%s as statsd_exporter: %s, want %s", tt.in, got, tt.exporter)
		}
		if got := show(usual, tt.in); got != tt.usual {
			t.Errorf("%s: %s, want %s", tt.in, got, tt.usual)
		}
	}
}

// TestFieldsOfEvents has unknown fields, which are counted, and empty and known ones, which
// are not.
func TestFieldsOfEvents(t *testing.T) {
	p := New(Config{})
	for rest, want := range map[string]int{"": 0, "|": 0, "|x": 1, "|x:1|y": 2, "|c:1|e:2|card:low": 0, "|h:a|d:1|#t": 0, "|hh:a": 1} {
		var l Line
		if r := p.Parse(&l, []byte("_e{1,1}:a|b"+rest)); r != OK {
			t.Fatal(rest, r)
		}
		if n, r := p.ParseEvent(&l); r != OK || n.Unknown != want {
			t.Errorf("event with %q: %d unknown, %v, want %d", rest, n.Unknown, r, want)
		}
		if r := p.Parse(&l, []byte("_sc|a|0"+rest)); r != OK {
			t.Fatal(rest, r)
		}
		if c, r := p.ParseServiceCheck(&l); r != OK || c.Unknown != want {
			t.Errorf("check with %q: %d unknown, %v, want %d", rest, c.Unknown, r, want)
		}
	}
}

// TestChecksAsMetrics: a check is a metric if its name and its tags are valid.
func TestChecksAsMetrics(t *testing.T) {
	p := New(Config{NameBytes: 5, TagKeyBytes: 3})
	for text, want := range map[string]string{
		"_sc|db.|0|#b:1,a": `OK "db" ["a:" "b:1"]`, "_sc|...|0": "EmptyName", "_sc|123456|0": "NameTooLong", "_sc|db|0|#abcd": "TagTooLong",
	} {
		var l Line
		if r := p.Parse(&l, []byte(text)); r != OK {
			t.Fatal(text, r)
		}
		c, r := p.ParseServiceCheck(&l)
		if r != OK {
			t.Fatal(text, r)
		}
		got := map[Reason]string{EmptyName: "EmptyName", NameTooLong: "NameTooLong", TagTooLong: "TagTooLong"}[p.IdentifyCheck(&l, &c)]
		if got == "" {
			var tags []string
			for _, tag := range l.Tags {
				tags = append(tags, fmt.Sprintf("%s:%s", tag.Key, tag.Value))
			}
			slices.Sort(tags)
			got = fmt.Sprintf("OK %q %q", l.Name, tags)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// TestHardNumbers are hard to round as strconv does: digits after the 19th do not
// count, nor do numbers below the normal ones.
func TestHardNumbers(t *testing.T) {
	for _, tt := range []struct {
		text string
		want float64
	}{
		{"1e-320", 0}, {"-5e-324", 0}, {"1e-99999999999999999999", 0}, {"0e99999999999999999999", 0}, {"2.225073858507201383e-308", 0},
		{"2.2250738585072014e-308", 0x1p-1022}, {"222507385850720140000000e-331", 0x1p-1022}, {"-2.225073858507201384e-308", -0x1p-1022},
		{"1.7976931348623157e308", math.MaxFloat64}, {"1.797693134862315807999e308", math.MaxFloat64}, {"-1797693134862315807e290", -math.MaxFloat64},
		{"1.797693134862315808e308", math.Inf(1)}, {"2e308", math.Inf(1)}, {"0.0002e312", math.Inf(1)}, {"1e99999999999999999999", math.Inf(1)},
		{"6.1164319251217312675e300", 6.116431925121731267e300}, {"12345678901234567890123e-3", 12345678901234567890.123},
		{"0.00000000000000000000000000012345678901234567899", 1.2345678901234567899e-28},
		// Halfway between 1 and the next number, and above it only by the digits at the end.
		{"1.00000000000000011102230246251565404236316680908203126", 1},
	} {
		got, r := parseNumber([]byte(tt.text))
		if r == NotFinite {
			got = math.Inf(1)
		}
		if (r == NotFinite) != math.IsInf(tt.want, 1) || r != OK && r != NotFinite || got != tt.want || math.Signbit(got) && got == 0 {
			t.Errorf("%s: %v, %v, want %v", tt.text, got, r, tt.want)
		}
	}
}

// TestExponents must have digits and nothing else.
func TestExponents(t *testing.T) {
	for text, want := range map[string]string{"1e2": "100", "1E2": "100", "1e+2": "100", "1e-2": "0.01", "1e": "", "1e+": "", "1e2x": "", "1e/": "", "1e:": "", "1f2": "", "1e2.5": ""} {
		v, r := parseNumber([]byte(text))
		got := ""
		if r == OK {
			got = strconv.FormatFloat(v, 'g', -1, 64)
		}
		if got != want {
			t.Errorf("%s: %q, %v, want %q", text, got, r, want)
		}
	}
}

// TestConfigHasTheDefaults expects zeros to be replaced, and negative limits to be none.
func TestConfigHasTheDefaults(t *testing.T) {
	got := New(Config{LineBytes: -1, NameBytes: 1}).Config()
	want := Config{LineBytes: 1<<31 - 1, NameBytes: 1, Segments: 32, Tags: 32, TagKeyBytes: 128, TagValueBytes: 512}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
