package jsontext

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestWriterLayout(t *testing.T) {
	var w Writer
	w.BeginObject()
	w.Key("none").Strings(nil)
	w.Key("nothing").BeginObject()
	w.EndObject()
	w.Key("names").Strings([]string{"a", "b"})
	w.Key("rows").BeginList()
	for _, n := range []uint32{1, 2} {
		w.BeginObject()
		w.Key("n").Uint32(n)
		w.Key("big").Uint64(1 << 63)
		w.EndObject()
	}
	w.BeginList()
	w.EndList()
	w.EndList()
	w.Key("on").Bool(true)
	w.Key("less").Int32(-7)
	w.Key("exact").Number(1 << 53)
	w.Key("large").Number(1<<53 + 1)
	w.Key("free").Value(map[string]any{"b": []any{1.5, 1e21, 0.0, true, nil, "<"}, "a": map[string]any{}, "c": struct{}{}, "d": math.Inf(-1)})
	w.EndObject()
	want := `{
 "none": [],
 "nothing": {},
 "names": [
  "a",
  "b"
 ],
 "rows": [
  {
   "n": 1,
   "big": "9223372036854775808"
  },
  {
   "n": 2,
   "big": "9223372036854775808"
  },
  []
 ],
 "on": true,
 "less": -7,
 "exact": 9007199254740992,
 "large": "9007199254740993",
 "free": {
  "a": {},
  "b": [
   1.5,
   1e+21,
   0,
   true,
   null,
   "\u003c"
  ],
  "c": null,
  "d": "-Infinity"
 }
}
`
	if got := string(w.Bytes()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestDurationsAndTimes(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                               `"0s"`,
		95 * time.Second:                `"95s"`,
		250 * time.Millisecond:          `"0.250s"`,
		1500 * time.Microsecond:         `"0.001500s"`,
		time.Second + 1:                 `"1.000000001s"`,
		-1500 * time.Millisecond:        `"-1.500s"`,
		-time.Duration(1) << 63:         `"-9223372036.854775808s"`,
		10 * time.Nanosecond:            `"0.000000010s"`,
		time.Hour + 30*time.Microsecond: `"3600.000030s"`,
	} {
		var w Writer
		w.Duration(d)
		if got := strings.TrimSpace(string(w.Bytes())); got != want {
			t.Errorf("duration %d: got %s, want %s", d, got, want)
		}
	}
	for nanos, want := range map[int]string{
		0:           `"2025-03-04T05:06:07Z"`,
		89_000_000:  `"2025-03-04T05:06:07.089Z"`,
		89_000:      `"2025-03-04T05:06:07.000089Z"`,
		120_000_001: `"2025-03-04T05:06:07.120000001Z"`,
	} {
		var w Writer
		w.Time(time.Date(2025, 3, 4, 6, 6, 7, nanos, time.FixedZone("", 3600)))
		if got := strings.TrimSpace(string(w.Bytes())); got != want {
			t.Errorf("time with %d ns: got %s, want %s", nanos, got, want)
		}
	}
}

func TestSeconds(t *testing.T) {
	for want, d := range map[string]struct {
		seconds int64
		nanos   int32
	}{
		`"0s"`:                    {},
		`"95.250s"`:               {95, 250_000_000},
		`"-95.250s"`:              {-95, -250_000_000},
		`"-0.000000001s"`:         {0, -1},
		`"9223372036854775807s"`:  {math.MaxInt64, 0},
		`"-9223372036854775808s"`: {math.MinInt64, 0},
		`"1.999999999s"`:          {1, math.MaxInt32}, // not valid
	} {
		var w Writer
		w.Seconds(d.seconds, d.nanos)
		if got := strings.TrimSpace(string(w.Bytes())); got != want {
			t.Errorf("%+v: got %s, want %s", d, got, want)
		}
	}
}

func TestStruct(t *testing.T) {
	var w Writer
	w.Struct(struct {
		List  []string      `json:"list"`
		Small uint32        `json:"small"`
		Large uint64        `json:"large"`
		Time  time.Duration `json:"time"`
		Text  string        `json:"text"`
		Set   bool          `json:"set"`
	}{[]string{"a"}, 1, 2, time.Second, "x", true})
	want := "{\n \"list\": [\n  \"a\"\n ],\n \"small\": 1,\n \"large\": \"2\",\n \"time\": \"1s\",\n \"text\": \"x\",\n \"set\": true\n}\n"
	if got := string(w.Bytes()); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

var stringSeeds = []struct{ in, want string }{
	{"", `""`},
	{"plain & simple", `"plain & simple"`},
	{"<inline>", `"\u003cinline\u003e"`},
	{"a\"b\\c", `"a\"b\\c"`},
	{"\b\f\n\r\t\x00\x1f\x7f", `"\b\f\n\r\t\u0000\u001f\u007f"`},
	{"é\u2028\u2029€", `"é\u2028\u2029€"`},
	{"bad \xff\xc3", "\"bad \ufffd\ufffd\""},
	{"a\ufffdb", "\"a\ufffdb\""},
}

func TestAppendString(t *testing.T) {
	for _, tt := range stringSeeds {
		if got := string(AppendString(nil, tt.in)); got != tt.want {
			t.Errorf("AppendString(%q) = %s, want %s", tt.in, got, tt.want)
		}
	}
}

// FuzzAppendString checks that any JSON reader decodes the text, and that no byte of
// the output could start a tag or end a line.
func FuzzAppendString(f *testing.F) {
	for _, tt := range stringSeeds {
		f.Add(tt.in)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out := AppendString(nil, s)
		var back string
		if err := json.Unmarshal(out, &back); err != nil {
			t.Fatalf("AppendString(%q) = %q: %v", s, out, err)
		}
		if want := strings.ToValidUTF8(s, "\ufffd"); utf8.ValidString(s) && back != want {
			t.Errorf("AppendString(%q) reads back as %q", s, back)
		}
		if strings.ContainsAny(string(out), "<>\n\r\x00") {
			t.Errorf("AppendString(%q) = %q holds a dangerous byte", s, out)
		}
	})
}
