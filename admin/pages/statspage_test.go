package pages

import (
	"fmt"
	"html"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/flush/history"
	"github.com/statsd-admin/statsd-admin/internal/clocktest"
	"github.com/statsd-admin/statsd-admin/store"
)

// board is a server with stats of all kinds that change when flush is called.
type board struct {
	srv   *admin.Server
	st    *store.Store
	now   time.Time
	flush func()
}

func newBoard(t *testing.T) *board {
	t.Helper()
	b := &board{now: testNow}
	b.st = store.New(store.Options{Now: func() time.Time { return b.now }})
	past := history.New(history.Config{Store: b.st})
	b.flush = func() {
		b.now = b.now.Add(5 * time.Second)
		snap := b.st.Flush(store.FlushOptions{})
		past.Add(snap)
		snap.Close()
	}
	var err error
	if b.srv, err = admin.New(admin.Config{Store: b.st, Now: func() time.Time { return b.now }, Sources: admin.Sources{History: past}}); err != nil {
		t.Fatal(err)
	}
	if err := Add(b.srv); err != nil {
		t.Fatal(err)
	}
	return b
}

// rows returns the cells of the table at a view of the stats page, without its head,
// and of the stats in the scope own only.
func (b *board) rows(t *testing.T, query string) (rows [][]string) {
	t.Helper()
	if !strings.Contains(query, "filter=") {
		query += "&filter=^own"
	}
	r := b.srv.Request("GET", Prefix+"stats?"+query+"&tsv=stats", nil)
	if r.Status != 200 {
		t.Fatalf("%s: %d %s", query, r.Status, r.Body)
	}
	for _, line := range strings.Split(strings.TrimSuffix(string(r.Body), "\n"), "\n")[1:] {
		rows = append(rows, strings.Split(strings.TrimPrefix(line, "own."), "\t"))
	}
	return rows
}

// TestChangeSinceZeroPoint expects exact differences, also beyond 2^53, of all kinds.
func TestChangeSinceZeroPoint(t *testing.T) {
	b := newBoard(t)
	root := b.st.Scope("own")
	large, plain, whole, hist := root.Counter("large"), root.Counter("plain"), root.Gauge("whole"), root.Histogram("hist", store.Milliseconds)
	large.Add(1<<60 + 1)
	plain.Add(10)
	whole.Set(7)
	hist.Record(5)
	b.flush()
	zero := b.now
	large.Add(9007199254740993)
	plain.Add(5)
	whole.Set(3)
	hist.Record(5)
	hist.Record(6)
	root.Counter("young").Add(4)
	root.Text("text").Set("x")
	b.flush()
	query := fmt.Sprintf("hide=rate.trend.changed&zero=%d", zero.UnixMilli())
	want := "[[hist histogram 3 2] [large counter 1161928703861587970 9007199254740993] [plain counter 15 5] [text text readout x ] [whole gauge 3 -4] [young counter 4 4]]"
	if got := fmt.Sprint(b.rows(t, query)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var names []string
	for _, row := range b.rows(t, query+"&sort=delta") {
		names = append(names, row[0])
	}
	if got := fmt.Sprint(names); got != "[large plain young hist text whole]" {
		t.Errorf("by change: %s", got)
	}
	b.srv.Request("POST", "/reset_counters", nil)
	plain.Add(2)
	if got := fmt.Sprint(b.rows(t, query+"&filter=own.plain")); got != "[[plain counter 2 2]]" {
		t.Errorf("after a reset: %s", got)
	}
	if body := string(b.srv.Request("GET", Prefix+"stats?zero=1", nil).Body); strings.Contains(body, "data-base") {
		t.Error("there is a change since a time before the history")
	}
}

// TestChangedWhenTheClockIsSet: the column is about elapsed time, whatever the clock says.
func TestChangedWhenTheClockIsSet(t *testing.T) {
	b := newBoard(t)
	b.now = time.Now()
	root := b.st.Scope("own")
	for _, name := range []string{"first", "second", "third"} {
		root.Counter(name).Inc()
		b.flush()
		b.now = clocktest.Set(b.now, -time.Hour)
	}
	var names []string
	for _, row := range b.rows(t, "sort=changed") {
		names = append(names, row[0])
	}
	if got := fmt.Sprint(names); got != "[third second first]" {
		t.Errorf("by the last change: %s", got)
	}
	at := fmt.Sprintf(" data-at='%d'", b.now.Add(-10*time.Second).UnixMilli())
	if body := string(b.srv.Request("GET", Prefix+"stats?filter=own.first", nil).Body); !strings.Contains(body, at) || !strings.Contains(body, ">10 s</td>") {
		t.Errorf("a change of 10 seconds ago has not%s:\n%s", at, body)
	}
}

// TestStatOrders sorts by each column both ways: one is the reverse of the other,
// but for rows of the same rank, which are in the order of their names.
func TestStatOrders(t *testing.T) {
	b := newBoard(t)
	root := b.st.Scope("own")
	b.flush()
	zero := b.now
	for i := range 20 {
		root.Counter(fmt.Sprintf("c%02d", i)).Add(uint64(100 + (i*7)%20))
		if i%4 == 0 {
			b.flush()
		}
	}
	root.Gauge("g").Set(3)
	root.Histogram("h", store.Milliseconds).Record(1)
	root.Text("t").Set("x")
	b.flush()
	at := map[string]int{"name": 0, "type": 1, "value": 2, "rate": 3, "delta": 4, "changed": 6}
	for column, i := range at {
		query := fmt.Sprintf("zero=%d&sort=%s&dir=", zero.UnixMilli(), column)
		up, down := b.rows(t, query+"asc"), b.rows(t, query+"desc")
		if len(up) != 23 || len(down) != 23 {
			t.Fatalf("%s: %d and %d rows", column, len(up), len(down))
		}
		slices.Reverse(down)
		for n := range up {
			value := func(row []string) string { return strings.Replace("0"+row[i], "00", "0", 1) } // none is like zero
			if value(up[n]) != value(down[n]) {
				t.Errorf("%s: row %d is %q up and %q down", column, n, up[n], down[n])
			}
		}
		if up[0][i] == up[22][i] {
			t.Errorf("%s: all rows have %q", column, up[0][i])
		}
	}
}

// TestStatViews expects what the rest of the query asks for.
func TestStatViews(t *testing.T) {
	b := newBoard(t)
	root := b.st.Scope("own")
	idle := root.Counter("a.idle")
	idle.Add(1)
	b.flush()
	for range 13 {
		b.flush()
	}
	root.Counter("a.busy").Add(1)
	root.Counter("b.busy").Add(1)
	b.flush()
	names := func(query string) string {
		var list []string
		for _, row := range b.rows(t, query) {
			list = append(list, row[0])
		}
		return strings.Join(list, " ")
	}
	for query, want := range map[string]string{
		"":                                       "a.busy a.idle b.busy",
		"recent=1":                               "a.busy b.busy",
		"recent=1&filter=own.a":                  "a.busy",
		"pins=own.b.busy%0Agone&filter=own.a":    "b.busy gone a.busy a.idle",
		"pins=own.b.busy%0D%0Agone&filter=own.a": "b.busy gone a.busy a.idle", // as browsers send a hidden field
		"re=ecma&filter=^own[.](?!a)":            "b.busy",
		"group=1":                                "a.busy a.idle b.busy",
		"rows=100&offset=2":                      "b.busy",
		"dir=desc":                               "b.busy a.idle a.busy",
		"dir=desc&offset=1":                      "a.idle a.busy",
	} {
		if got := names(query); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	page := func(query string) string {
		return string(b.srv.Request("GET", Prefix+"stats?"+query, nil).Body)
	}
	for query, want := range map[string]string{
		"group=1":          "<tr class='group'><td colspan='6'><span class='mono wrap'>own.<wbr>b.</span>",
		"sel=own.a.idle":   "<tr class='sel'>",
		"filter=a(b":       "Invalid re2 regex: missing closing ), at character 2</span><pre class='caret' aria-hidden='true'>a(b\n ^</pre>",
		"filter=own.a":     "</span> 2 of ",
		"filter=ownership": "Names begin with <a href='stats?filter=%5Eown%5C.'>own.</a>",
		"filter=x&recent":  "<a href='stats?filter=x'>Drop the chips</a>",
		"hide=type":        "<li><a data-k='column-type' href='stats'>Type</a></li>",
		"pins=own.b.busy":  "<tr class='pinned'>",
	} {
		if body := page(query); !strings.Contains(body, want) {
			t.Errorf("%s lacks %s:\n%s", query, want, body)
		}
	}
}

// TestStreamIDs expects the rows of the largest page to fit into an address, also where
// there are many stats, and the server to read the same ones from it.
func TestStreamIDs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 100, 1000, 1050} {
		for _, most := range []uint64{1050, 1 << 20, 50_000_000} {
			var refs []uint64
			for range n {
				refs = append(refs, random.Uint64N(most))
			}
			address := url(streamPath, streamIDs(slices.Clone(refs))...)
			var got []uint64
			for _, list := range strings.Split(address, "ids=")[1:] {
				list = strings.TrimSuffix(list, "&")
				if len(list) > 4096 {
					t.Errorf("a parameter has %d bytes", len(list))
				}
				last := uint64(0)
				for _, word := range strings.Split(list, ".") {
					n, err := strconv.ParseUint(word, 10, 64)
					if err != nil {
						t.Fatal(err)
					}
					last += n
					got = append(got, last)
				}
			}
			slices.Sort(refs)
			if refs = slices.Compact(refs); !slices.Equal(got, refs) || len(address) > 8000 {
				t.Errorf("%d ids below %d: %d of %d in %d bytes", n, most, len(got), len(refs), len(address))
			}
		}
	}
	if got := len(url(streamPath, streamIDs(func() (far []uint64) {
		for i := range uint64(1050) {
			far = append(far, i<<42)
		}
		return far
	}())...)); got > 8000 {
		t.Errorf("an address of %d bytes", got)
	}
}

// TestStatOrder: open pages read which rows they would have now, in which order, without
// the rows themselves.
func TestStatOrder(t *testing.T) {
	b := newBoard(t)
	for i, name := range []string{"low", "high", "other"} {
		b.st.Scope("own").Counter(name).Add([]uint64{1, 9, 5}[i])
	}
	b.flush()
	const view = Prefix + "stats?filter=^own.(low|high)&sort=value&pins=own.other%0Aabsent"
	if got, want := string(b.srv.Request("GET", view+"&tsv=order", nil).Body), "2\nown.other\nabsent\nown.high\nown.low"; got != want {
		t.Errorf("the order is %q, want %q", got, want)
	}
	if r := b.srv.Request("GET", Prefix+"stats?filter=(&tsv=order", nil); r.Status != 400 {
		t.Errorf("with a wrong filter: %d %s", r.Status, r.Body)
	}
}

// TestLinksHaveRoom: the pins in a link lose their oldest names before the server refuses
// the link.
func TestLinksHaveRoom(t *testing.T) {
	b := newBoard(t)
	b.st.Scope("own").Counter(strings.Repeat("n", 200)).Add(1)
	b.flush()
	var names []string
	for i := range 4 {
		names = append(names, fmt.Sprint(i, strings.Repeat("x", 990)))
	}
	page := b.srv.Request("GET", Prefix+"stats?filter=^own&pins="+strings.Join(names, "%0A"), nil)
	links := regexp.MustCompile(`href='([^']*pins=[^']*)'`).FindAllStringSubmatch(string(page.Body), -1)
	if len(links) < 5 {
		t.Fatalf("%d links in %s", len(links), page.Body)
	}
	for _, link := range links {
		if r := b.srv.Request("GET", Prefix+html.UnescapeString(link[1]), nil); r.Status != 200 {
			t.Errorf("a link of %d bytes: %d %s", len(link[1]), r.Status, r.Body)
		}
	}
	for want, got := range map[string]string{
		names[0]:                      namesValue(names[:1], 10),
		strings.Join(names[1:], "\n"): namesValue(append(names, "new")[:4], 3),
		"b\nc":                        namesValue([]string{"a", "b", "c"}, 2),
		"":                            namesValue([]string{strings.Repeat("x", maxValue+1)}, 2),
	} {
		if got != want {
			t.Errorf("%.40q…, want %.40q…", got, want)
		}
	}
}
