package top

import (
	"bufio"
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/golden"
)

// feed applies events as they come from a server.
func feed(t testing.TB, s *screen, events string) {
	t.Helper()
	r := newReader(strings.NewReader(events))
	for {
		e, err := r.next()
		if err != nil {
			return
		}
		s.apply(e)
	}
}

// start is a stream's beginning: a reset, and the values in two parts.
const start = `event: reset
id: 1.1
data: {"v":1,"seq":1,"t":1763829137123,"reason":"start"}

: a comment
event: delta
data: {"v":1,"seq":1,"t":1763829137123,"interval_ms":0,"more":true,"new":[[1,"counter","cart.items"],[2,"gauge","cart.open"],[3,"text","build.label"]],"rows":[[1,12,0],[2,-2.5,0],[3,"r42 \u001b[31m\u009b2J"]]}

event: delta
id: 1.1
data: {"v":1,"seq":1,"t":1763829137123,"interval_ms":0,"new":[[4,"histogram","cart.time",1763829137000,"milliseconds"],[5,"counter","a.very.long.name.of.a.counter.that.does.not.fit.on.a.narrow.screen.at.all"],[6,"counter","evil\u001b]0;x\u0007\u001b[2J\nname\u202e"]],"rows":[[4,100,0,null],[5,"18446744073709551615",0],[6,1,0]]}

`

// second is the next second.
const second = `event: delta
id: 1.2
data: {"v":1,"seq":2,"t":1763829138123,"interval_ms":1000,"new":[[7,"counter","new.商品.one"]],"rows":[[1,15,3],[2,4,0],[4,160,60,[3,8,85.25]],[7,2,2]]}

`

// third has changes of one stat only, and the end of another.
const third = `event: delta
id: 1.3
data: {"v":1,"seq":3,"t":1763829139123,"interval_ms":1000,"rows":[[7,12,10]],"gone":[5]}

`

const clustersAnswer = `{"cluster_statuses":[
{"name":"pay","host_statuses":[{"stats":[{"name":"rq_total","value":"100"},{"name":"cx_active","value":"2","type":"GAUGE"}],"health_status":{"eds_health_status":"HEALTHY"}}]},
{"name":"checkout\u001b[2J","host_statuses":[
 {"stats":[{"name":"rq_total","value":"10"},{"name":"rq_active","value":"1"}],"health_status":{"failed_active_health_check":true,"eds_health_status":"HEALTHY"}},
 {"stats":[{"name":"rq_total"}],"health_status":{"failed_active_health_check":true,"failed_outlier_check":true,"eds_health_status":"UNHEALTHY"}},
 {"health_status":{"eds_health_status":"DEGRADED","failed_outlier_check":false}}]},
{"name":"empty"}]}`

const histogramAnswer = `{"v":1,"histograms":1,"unit":"milliseconds","error_bound":0.01,"count":7,"sum":60,"min":3,"max":30.25,"quantiles":[[50,8],[99.9,30.25]],"bins":[[3,0.01,2],[8,0.1,3],[9,0.1,1],[30,0.5,1]]}`

// sequence matches the escape sequences that the screen uses.
var sequence = regexp.MustCompile("\x1b\\[[0-9;]*m")

// checkSafe checks that a screen has only our escape sequences, and lines of its width.
func checkSafe(t *testing.T, lines []string, columns int) {
	t.Helper()
	for _, line := range lines {
		plain := sequence.ReplaceAllString(line, "")
		if strings.ContainsFunc(plain, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u202e' }) {
			t.Errorf("control characters in %q", line)
		}
		if w := width(plain); w != columns {
			t.Errorf("%d columns, want %d: %q", w, columns, plain)
		}
	}
}

// press presses keys, which are separated by blanks.
func press(s *screen, keys string) {
	for k := range strings.FieldsSeq(keys) {
		if k == "space" {
			k = " "
		}
		s.key(k, 10)
	}
}

func TestScreens(t *testing.T) {
	for _, tt := range []struct {
		name           string
		columns, lines int
		style          Style
		events         string
		keys           string
	}{
		{name: "start", events: start},
		{name: "second", events: start + second},
		{name: "third", events: start + second + third},
		{name: "color", style: Style{Color: true}, events: start + second},
		{name: "ascii", style: Style{ASCII: true}, events: start + second},
		{name: "wide", columns: 130, events: start + second},
		{name: "narrow", columns: 50, lines: 8, events: start + second},
		{name: "too-small", columns: 10, lines: 8, events: start},
		{name: "by-name", events: start + second, keys: "1"},
		{name: "by-name-reversed", events: start + second, keys: "1 1"},
		{name: "by-value", events: start + second, keys: "3"},
		{name: "by-change", events: start + second, keys: "s"},
		{name: "selected", lines: 6, events: start + second, keys: "1 j j j j"},
		{name: "end", lines: 6, events: start + second, keys: "1 end"},
		{name: "paged", lines: 6, events: start + second, keys: "1 pgdn up"},
		{name: "zero", events: start + second, keys: "z"},
		{name: "paused", events: start, keys: "p"},
		{name: "by-last-change", columns: 130, events: start + second + third, keys: "6"},
		{name: "pinned", events: start + second, keys: "end space home"},
		{name: "histograms", events: start + second, keys: "4 end space g h"},
		{name: "copied", events: start + second, keys: "c"},
		{name: "help", events: start, keys: "?"},
		{name: "editing", events: start, keys: "/ backspace c backspace ^ c a x backspace"},
		{name: "applied", events: start, keys: "/ c enter"},
		{name: "clusters", events: start, keys: "g c"},
		{name: "clusters-wide", columns: 130, style: Style{Color: true}, events: start, keys: "g c j"},
		{name: "no-histogram", events: start + second, keys: "3 enter"},
		{name: "histogram", events: start + second, keys: "4 home enter"},
		{name: "histogram-narrow", columns: 60, lines: 8, style: Style{ASCII: true}, events: start + second, keys: "4 enter"},
		{name: "expensive", events: start + "event: error\ndata: {\"v\":1,\"seq\":1,\"t\":1,\"reason\":\"filter too expensive\"}\n"},
		{name: "counters-reset", events: start + second + "event: reset\ndata: {\"v\":1,\"seq\":3,\"t\":1763829139123,\"reason\":\"counters\"}\n\nevent: delta\ndata: {\"v\":1,\"seq\":3,\"t\":1763829139123,\"interval_ms\":0,\"new\":[[1,\"counter\",\"cart.items\"],[2,\"gauge\",\"cart.open\"]],\"rows\":[[1,4,0],[2,5,0]]}\n\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.columns == 0 {
				tt.columns = 80
			}
			if tt.lines == 0 {
				tt.lines = 12
			}
			s := newScreen(tt.style, "http://127.0.0.1:9901", "", "rate")
			feed(t, s, tt.events)
			s.draw(tt.columns, tt.lines)
			press(s, tt.keys)
			if tt.name == "paused" {
				feed(t, s, second)
			}
			switch path := s.path(); {
			case s.view == viewHistogram:
				s.answer(answer{path: path, body: []byte(histogramAnswer)})
			case path != "":
				s.answer(answer{path: path, body: []byte(clustersAnswer)})
				s.model.millis += 2000
				s.answer(answer{path: path, body: []byte(strings.Replace(clustersAnswer, `"100"`, `"124"`, 1))})
			}
			lines := s.draw(tt.columns, tt.lines)
			checkSafe(t, lines, tt.columns)
			golden.Check(t, tt.name, []byte(strings.ReplaceAll(strings.Join(lines, "$\n"), "\x1b", "^")+"$\n"))
		})
	}
}

// TestEffectsOfKeys: each key moves the selection, within the rows, or changes the view.
// A page has two rows, and there are seven stats.
func TestEffectsOfKeys(t *testing.T) {
	for _, tt := range []struct {
		keys     string
		selected int
		filter   string
		column   string
		view     view
	}{
		{"j j k", 1, "", "rate", viewStats},
		{"down down up", 1, "", "rate", viewStats},
		{"k", 0, "", "rate", viewStats},
		{"pgdn pgdn pgup", 2, "", "rate", viewStats},
		{"] ] [", 2, "", "rate", viewStats},
		{"end", 6, "", "rate", viewStats},
		{"end j", 6, "", "rate", viewStats},
		{"end pgup home", 0, "", "rate", viewStats},
		{"/ c a enter", 0, "ca", "rate", viewStats},
		{"/ c a esc", 0, "", "rate", viewStats},
		{"/ c a enter / x esc", 0, "ca", "rate", viewStats},
		{"/ c a enter / clear enter", 0, "", "rate", viewStats},
		{"2", 0, "", "type", viewStats},
		{"6 s", 0, "", "name", viewStats},
		{"? q", 0, "", "rate", viewStats},
		{"g c g s", 0, "", "rate", viewStats},
		{"g c esc", 0, "", "rate", viewStats},
		{"g c", 0, "", "rate", viewClusters},
		{"g x", 0, "", "rate", viewStats},
		{"1 end enter", 6, "", "name", viewStats}, // not a histogram
	} {
		s := newScreen(Style{}, "", "", "rate")
		feed(t, s, start+second)
		for k := range strings.FieldsSeq(tt.keys) {
			s.draw(80, frame+2)
			s.key(k, 2)
		}
		s.draw(80, frame+2)
		if s.selected != tt.selected || s.filter != tt.filter || s.column != tt.column || s.view != tt.view || s.quit || s.editing {
			t.Errorf("%s: row %d, filter %q, column %s, view %v; want %d, %q, %s, %v", tt.keys, s.selected, s.filter, s.column, s.view, tt.selected, tt.filter, tt.column, tt.view)
		}
	}
}

// TestSortedByType: kinds are in the order of their names, the other way round with another key.
func TestSortedByType(t *testing.T) {
	for keys, want := range map[string]string{
		"2": "counter counter counter counter gauge histogram text", "2 2": "text histogram gauge counter counter counter counter",
	} {
		s := newScreen(Style{}, "", "", "rate")
		feed(t, s, start+second)
		press(s, keys)
		s.draw(80, 20)
		var got []string
		for _, r := range s.list {
			got = append(got, r.kind)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s, want %s", keys, got, want)
		}
	}
}

// TestAnswersWithLittle: no clusters, an unhealthy cluster that is not selected, no values
// and an answer that cannot be read.
func TestAnswersWithLittle(t *testing.T) {
	for _, tt := range []struct{ keys, body, want string }{
		{"g c", `{"cluster_statuses":[]}`, "No clusters are configured"},
		{"g c", strings.Replace(clustersAnswer, `"name":"pay"`, `"name":"first"`, 1), "\x1b[31m  "},
		{"g h home enter", `{"v":1,"count":0,"sum":0,"min":null,"max":null,"quantiles":[],"bins":[]}`, "No recorded values"},
		{"g h home enter", `{"v":1,"bins":[]`, "malformed answer"},
	} {
		s := newScreen(Style{Color: true}, "", "", "rate")
		feed(t, s, start+second)
		s.draw(80, 12)
		press(s, tt.keys)
		s.answer(answer{path: s.path(), body: []byte(tt.body)})
		press(s, "end")
		if got := strings.Join(s.draw(80, 12), "\n"); !strings.Contains(got, tt.want) {
			t.Errorf("%s, %s: no %q in\n%s", tt.keys, tt.body, tt.want, got)
		}
	}
}

// TestRatesEnd: a stat whose stream is silent has no rate after two intervals, but its
// value and its change.
func TestRatesEnd(t *testing.T) {
	s := newScreen(Style{}, "", "", "rate")
	feed(t, s, start+second)
	rates := func() (sum float64) {
		s.refresh()
		for _, r := range s.list {
			if r.kind != "histogram" { // they change with flushes
				sum += r.rate
			}
		}
		return sum
	}
	for _, want := range []float64{5, 0, 0} {
		if s.pass(); rates() != want {
			t.Errorf("the rates are %v, want %v", rates(), want)
		}
	}
	feed(t, s, third)
	if s.pass(); rates() != 10 {
		t.Errorf("with an event the rates are %v", rates())
	}
}

// TestClockIsSetBack: how long ago a stat changed does not depend on the clock of the server.
func TestClockIsSetBack(t *testing.T) {
	s := newScreen(Style{}, "", "", "rate")
	feed(t, s, start+second+`event: delta
data: {"v":1,"seq":3,"t":1763825543123,"interval_ms":5000,"rows":[[7,12,10]]}

`)
	for id, want := range map[uint64]int64{1: 5000, 7: 0} {
		if got := s.model.millis - s.model.rows[id].changed; got != want {
			t.Errorf("stat %d changed %d ms ago, want %d", id, got, want)
		}
	}
	if r := s.model.rows[3]; r.changed != 0 {
		t.Errorf("a stat that never changed did at %d", r.changed)
	}
}

// TestGoTo presses the keys that go to a view on the pages.
func TestGoTo(t *testing.T) {
	s := newScreen(Style{}, "http://127.0.0.1:9901", "", "rate")
	feed(t, s, start)
	for _, x := range []struct {
		keys string
		want view
	}{{"g c", viewClusters}, {"g c", viewClusters}, {"g x", viewClusters}, {"g s", viewStats}, {"g h", viewStats}, {"g c", viewClusters}, {"g s", viewStats}} {
		if press(s, x.keys); s.view != x.want {
			t.Errorf("after %q the view is %v, want %v", x.keys, s.view, x.want)
		}
	}
	press(s, "g c")
	s.ask = false
	if press(s, "n"); !s.ask {
		t.Error("n does not ask for the clusters")
	}
	if press(s, "g s n"); s.ask && s.path() == "" {
		t.Error("n asks for nothing")
	}
}

// TestSelectionStaysOnItsRow: rows that move take the selection with them.
func TestSelectionStaysOnItsRow(t *testing.T) {
	s := newScreen(Style{}, "", "", "rate")
	feed(t, s, start+second)
	s.draw(80, 12)
	press(s, "j j")
	want := s.list[s.selected].name
	feed(t, s, third)
	s.draw(80, 12)
	if got := s.list[s.selected].name; got != want {
		t.Errorf("selected %s, want %s", got, want)
	}
	if s.filter != "" || s.quit {
		t.Errorf("filter %q, quit %t", s.filter, s.quit)
	}
}

// TestPins: pinned stats are in the stream whatever the filter, until they are unpinned.
func TestPins(t *testing.T) {
	s := newScreen(Style{}, "", "", "name")
	feed(t, s, start+second)
	press(s, "j j space space j j j space")
	s.refresh()
	if want := map[string]bool{"cart.open": true}; !maps.Equal(s.pinned, want) || s.list[0].name != "cart.open" {
		t.Errorf("pinned %v, first %s", s.pinned, s.list[0].name)
	}
	if got := s.streamFilter(); got != "" {
		t.Errorf("filter %q selects less than everything", got)
	}
	press(s, "/ ^ a | b enter")
	re := regexp.MustCompile(s.streamFilter())
	for name, want := range map[string]bool{"cart.open": true, "a": true, "cb": true, "cxrt.opens": false, "xrt_open": false} {
		if re.MatchString(name) != want {
			t.Errorf("the stream with %q: %s is in it: %t", re, name, !want)
		}
	}
	for i := range maxPins + 9 {
		s.model.rows[uint64(100+i)] = &row{id: uint64(100 + i), name: strings.Repeat("x", i+1)}
		s.stale = true
		press(s, "end space")
	}
	if len(s.pinned) != maxPins || s.message == "" {
		t.Errorf("%d pins, message %q", len(s.pinned), s.message)
	}
	if press(s, "home space"); len(s.pinned) != maxPins-1 {
		t.Errorf("%d pins after one was removed", len(s.pinned))
	}
}

// TestCopy: a copy has nothing that a terminal could act on.
func TestCopy(t *testing.T) {
	s := newScreen(Style{}, "", "", "name")
	feed(t, s, start+second)
	press(s, "end")
	for i, want := range map[string]string{"evil": "evil\\x1b]0;x\\a\\x1b[2J\\nname\\u202e\tcounter\t1", "cart.time": "cart.time\thistogram\t160"} {
		s.refresh()
		s.selected = slices.IndexFunc(s.list, func(r *row) bool { return strings.HasPrefix(r.name, i) })
		if press(s, "c"); s.copied != want {
			t.Errorf("copied %q, want %q", s.copied, want)
		}
	}
	var out bytes.Buffer
	l := newLoop(Config{Size: func() (int, int) { return 80, 10 }})
	w := bufio.NewWriter(&out)
	for range 2 {
		if err := l.draw(s, w); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(out.String(), "\x1b]52;c;"); n != 1 {
		t.Errorf("the clipboard is set %d times", n)
	}
}

func TestManyStatsAreLeftOut(t *testing.T) {
	s := newScreen(Style{}, "x", "", "rate")
	for id := range uint64(maxRows) {
		s.model.rows[id] = &row{}
	}
	s.model.create(entry{"999999", "counter", "one.more"})
	if !strings.Contains(s.head(80), "1 left out") || len(s.model.rows) != maxRows {
		t.Errorf("%d rows: %s", len(s.model.rows), s.head(80))
	}
}

func TestShortNumbers(t *testing.T) {
	for _, tt := range []struct {
		x    float64
		n    int
		want string
	}{
		{0, 5, "0"}, {12, 5, "12"}, {-2.5, 5, "\u22122.5"}, {0.0001, 5, "0"}, {0.01234, 5, "0.012"}, {999.94, 4, "1000"}, {1234.5678, 7, "1,235"}, {123456, 5, "123k"}, {1234567, 5, "1.23M"}, {999999, 5, "1000k"},
		{999.5, 5, "1,000"}, {1e6, 5, "1.00M"}, {-1e6, 6, "\u22121.00M"}, {1e6, 9, "1,000,000"}, {1000500, 5, "1.00M"}, {99999, 5, "100k"}, {100000, 5, "100k"}, {1e9, 5, "1.00G"}, {1e12, 5, "1.00T"},
		{1e15, 5, "1.00P"}, {1e18, 5, "1.00E"}, {-123456, 5, "\u2212123k"}, {18446744073709551615, 8, "18.45E"}, {1e30, 6, "1e+30"}, {1.0 / 3, 9, "0.333"},
	} {
		if got := short(tt.x, tt.n); got != tt.want {
			t.Errorf("short(%v, %d) = %q, want %q", tt.x, tt.n, got, tt.want)
		}
	}
}

func TestKeys(t *testing.T) {
	for in, want := range map[string]string{
		"q": "q", "/ab\r": "/ a b enter", "\x1b[A\x1bOB\x1b[6~": "up down pgdn", "\x1b": "esc", "\x1b[1;5C\x1b[200~j": "j", "\x1b[": "", "\x1b[Ej\x1b[@k\x1b[~l": "j k l",
		"é\xff\x7f\x03": "é backspace quit", "\x04\x08": "quit backspace", "\x15\x0c": "clear redraw", "\x01": "",
	} {
		if got := strings.Join(decodeKeys(in), " "); got != want {
			t.Errorf("decodeKeys(%q) = %q, want %q", in, got, want)
		}
	}
}

// FuzzScreen checks that neither a server nor a user can write to the terminal, and
// that all lines have the width of the screen.
func FuzzScreen(f *testing.F) {
	f.Add(start+second+third, "j/abc\r", "a\x1b[2Jb", 80, 24)
	f.Add(start, "gc", clustersAnswer, 60, 10)
	f.Add(start+second, "4\r", histogramAnswer, 100, 20)
	f.Add("event: delta\ndata: {\"new\":[[1,\"\",\"漢\"],[2]],\"rows\":[[1],[2,1,2,[1]]],\"gone\":[1]}\n", "\x1b[Bp?z", "{}", 1, 4)
	f.Fuzz(func(t *testing.T, events, keys, body string, columns, lines int) {
		columns, lines = leastColumns+columns&0xff, frame+1+lines&0x3f
		s := newScreen(Style{Color: true}, body, "", "rate")
		feed(t, s, events)
		for _, k := range decodeKeys(keys) {
			s.key(k, lines-frame)
			s.answer(answer{path: s.path(), body: []byte(body)})
			checkSafe(t, s.draw(columns, lines), columns)
		}
		checkSafe(t, s.draw(columns, lines), columns)
		var table strings.Builder
		if err := s.table(&table); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(table.String(), "\n"); n != len(s.list)+1 || strings.ContainsRune(table.String(), 0x1b) {
			t.Errorf("%d lines for %d stats: %q", n, len(s.list), table.String())
		}
	})
}

// TestHelpFits expects no line of the help to be cut on 80 columns.
func TestHelpFits(t *testing.T) {
	for _, line := range help() {
		if len(line) > 80 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}

// TestExactChange: changes are exact beyond 2^53, since the beginning, a zero point and a
// reset of the stream, and order the rows.
func TestExactChange(t *testing.T) {
	s := newScreen(Style{}, "", "", "change")
	changes := func() (list []string) {
		s.refresh()
		for _, r := range s.list {
			list = append(list, r.name+" "+r.change())
		}
		return list
	}
	const begin = "event: delta\ndata: {\"interval_ms\":0,\"new\":[[1,\"counter\",\"a\"],[2,\"counter\",\"b\"]],\"rows\":[[1,\"9007199254740993\",0],[2,5,0]]}\n\n"
	const next = "event: delta\ndata: {\"interval_ms\":1000,\"rows\":[[1,\"9007199254740996\",3],[2,7,2]]}\n\n"
	feed(t, s, begin+next)
	if got, want := changes(), []string{"a 3", "b 2"}; !slices.Equal(got, want) {
		t.Errorf("changes are %v, want %v", got, want)
	}
	press(s, "z")
	if got, want := changes(), []string{"a 0", "b 0"}; !slices.Equal(got, want) {
		t.Errorf("after a zero point changes are %v, want %v", got, want)
	}
	const again = "event: reset\ndata: {\"reason\":\"start\"}\n\nevent: delta\ndata: {\"interval_ms\":0,\"new\":[[3,\"counter\",\"a\"],[4,\"counter\",\"b\"]],\"rows\":[[3,\"9007199254740997\",0],[4,9,0]]}\n\n"
	feed(t, s, again)
	if got, want := changes(), []string{"b 2", "a 1"}; !slices.Equal(got, want) {
		t.Errorf("after a reset of the stream changes are %v, want %v", got, want)
	}
}
