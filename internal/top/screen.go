package top

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/statsd-admin/statsd-admin/internal/numfmt"
	"github.com/statsd-admin/statsd-admin/internal/oneline"
)

// Style is how a terminal can be written to.
type Style struct {
	Color bool
	ASCII bool // no characters for bars
}

// view selects the contents of the screen.
type view int

const (
	viewStats view = iota
	viewClusters
	viewHistogram
	viewHelp
)

// screen has the state of the screen. It is used by one goroutine.
type screen struct {
	style  Style
	server string // its address
	model  *model
	list   []*row
	stale  bool // list is older than model
	silent int  // intervals without an event

	view     view
	column   string
	reverse  bool
	kind     string // of the stats that are listed, "" for all
	filter   string
	pinned   map[string]bool // names of stats that stay on top
	copied   string          // text for the clipboard
	editing  bool
	going    bool // g was pressed: the next key names a view
	input    string
	paused   bool
	selected int
	offset   int
	message  string // an error, until the next event
	quit     bool
	stream   bool // the filter changed: the stream has to begin again
	ask      bool // the view needs an answer at once

	board     *board
	histogram string // the name of the shown one
	dist      *distribution
}

func newScreen(st Style, server, filter, column string) *screen {
	return &screen{style: st, server: server, model: newModel(), filter: filter, pinned: make(map[string]bool), column: column, stale: true}
}

func escapeQuery(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// descending reports whether the present order begins with the greatest.
func (s *screen) descending() bool {
	return (s.column != "name" && s.column != "type") != s.reverse
}

// apply applies an event and reports whether there is something new to draw.
func (s *screen) apply(e *event) bool {
	if e.kind == "error" {
		s.message = oneline.Escape(e.Reason)
		return true
	}
	if !s.model.apply(e) {
		return false
	}
	s.message = ""
	s.silent = 0
	s.stale = s.stale || !s.paused
	return !s.paused
}

// pass ends an interval. The server sends no event if nothing has changed, so nothing
// has a rate after two without one: a single one can be late.
func (s *screen) pass() {
	if s.silent++; s.silent == 2 {
		s.model.cool()
		s.stale = s.stale || !s.paused
	}
}

// refresh sorts the rows and keeps the selection on its row.
func (s *screen) refresh() {
	if !s.stale {
		return
	}
	s.stale = false
	var id uint64
	if s.selected > 0 && s.selected < len(s.list) {
		id = s.list[s.selected].id
	}
	s.list = s.model.sorted(s.kind, s.pinned, s.column, s.descending())
	if id != 0 {
		s.selected = max(0, slices.IndexFunc(s.list, func(r *row) bool { return r.id == id }))
	}
}

// rows returns how many rows the present view has.
func (s *screen) rows() int {
	switch {
	case s.view == viewClusters && s.board != nil:
		return len(s.board.rows)
	case s.view == viewStats:
		return len(s.list)
	}
	return 0
}

// key handles a key. page is the number of rows on the screen.
func (s *screen) key(k string, page int) {
	switch {
	case k == keyQuit:
		s.quit = true
	case s.editing:
		s.edit(k)
	case s.going:
		s.going = false
		s.goTo(k)
	case s.view == viewHelp:
		s.view = viewStats
	default:
		s.command(k, page)
	}
	s.selected = min(max(s.selected, 0), max(s.rows()-1, 0))
}

// edit handles a key while the filter is edited.
func (s *screen) edit(k string) {
	switch k {
	case keyEnter:
		s.editing = false
		if s.input != s.filter {
			s.filter, s.stream, s.message = s.input, true, ""
		}
	case keyEscape:
		s.editing = false
	case keyClear:
		s.input = ""
	case keyBack:
		if r := []rune(s.input); len(r) > 0 {
			s.input = string(r[:len(r)-1])
		}
	default:
		if len([]rune(k)) == 1 && len(s.input) < 1000 {
			s.input += k
		}
	}
}

func (s *screen) command(k string, page int) {
	switch k {
	case "q":
		s.quit = true
	case keyEscape:
		s.show(viewStats)
	case "?":
		s.view = viewHelp
	case "g":
		s.going = true
	case "n":
		s.ask = s.path() != ""
		s.stale = true
	case "c":
		s.copyRow()
	case " ":
		s.pin()
	case "/":
		s.show(viewStats)
		s.editing, s.input = true, s.filter
	case "p":
		s.paused = !s.paused
		s.stale = true
	case "z":
		s.model.zero()
		s.stale = true
	case "s":
		i := slices.Index(columns[:], s.column)
		s.sort(columns[(i+1)%len(columns)])
	case "1", "2", "3", "4", "5", "6":
		s.sort(columns[k[0]-'1'])
	case keyUp, "k":
		s.selected--
	case keyDown, "j":
		s.selected++
	case keyPageUp, "[":
		s.selected -= page
	case keyPageDn, "]":
		s.selected += page
	case keyHome:
		s.selected = 0
	case keyEnd:
		s.selected = s.rows() - 1
	case keyEnter:
		s.open()
	}
}

// goTo shows the view with a letter, as on the pages.
func (s *screen) goTo(k string) {
	switch k {
	case "s":
		s.listKind("")
	case "h":
		s.listKind("histogram")
	case "c":
		s.show(viewClusters)
	}
}

// listKind shows the stats of a kind, or all.
func (s *screen) listKind(kind string) {
	s.show(viewStats)
	s.kind, s.stale = kind, true
}

// current returns the selected stat, or nil.
func (s *screen) current() *row {
	if s.refresh(); s.view != viewStats || s.selected >= len(s.list) {
		return nil
	}
	return s.list[s.selected]
}

// pin keeps the selected stat on top whatever the filter, or no longer does.
func (s *screen) pin() {
	r := s.current()
	if r == nil {
		return
	}
	if s.pinned[r.name] {
		delete(s.pinned, r.name)
	} else if len(s.pinned) < maxPins {
		s.pinned[r.name] = true
	} else {
		s.message = fmt.Sprintf("at most %d stats can be pinned", maxPins)
	}
	s.stale = true
}

// copyRow copies the selected stat to the clipboard.
func (s *screen) copyRow() {
	if r := s.current(); r != nil {
		s.copied = oneline.Escape(r.name) + "\t" + oneline.Escape(r.kind) + "\t" + oneline.Escape(r.text)
		s.message = "sent to the clipboard of the terminal"
	}
}

// streamFilter returns the filter of the stream, which selects the pinned stats too.
func (s *screen) streamFilter() string {
	if s.filter == "" || len(s.pinned) == 0 {
		return s.filter
	}
	names := slices.Sorted(maps.Keys(s.pinned))
	for i, name := range names {
		names[i] = regexp.QuoteMeta(name)
	}
	return "(?:" + s.filter + ")|^(?:" + strings.Join(names, "|") + ")$"
}

func (s *screen) show(v view) {
	if s.view != v {
		s.view, s.selected, s.offset, s.ask = v, 0, 0, v == viewClusters
	}
}

// sort sorts by a column, in the other direction if it is the present one.
func (s *screen) sort(column string) {
	s.reverse = s.column == column && !s.reverse
	s.column, s.stale = column, true
}

// open shows the selected histogram.
func (s *screen) open() {
	r := s.current()
	if r == nil {
		return
	}
	if r.kind != "histogram" {
		s.message = "only histograms have a distribution"
		return
	}
	s.view, s.histogram, s.dist, s.ask = viewHistogram, r.name, nil, true
}

// path returns what the view needs besides the stream, "" for nothing.
func (s *screen) path() string {
	switch s.view {
	case viewClusters:
		return "/clusters?format=json"
	case viewHistogram:
		return histogramPath(s.histogram)
	}
	return ""
}

const (
	frame        = 3  // lines around the rows: the head, the names of the columns, the foot
	leastColumns = 40 // of a screen
	maxPins      = 16 // stats on top, whose names are in the address of the stream
)

// draw returns the lines of a screen, each of the width of the screen.
func (s *screen) draw(columns, lines int) []string {
	if columns < leastColumns || lines < frame+1 {
		return []string{s.style.fit("too small", max(columns, 0))}
	}
	s.refresh()
	out := []string{s.bold(s.style.fit(s.head(columns), columns))}
	var body []string
	page := lines - frame
	switch s.view {
	case viewHelp:
		body = help()
	case viewClusters:
		body = s.clusters(columns, page)
	case viewHistogram:
		body = []string{oneline.Escape(s.histogram)}
		if s.dist != nil {
			body = append(body, s.dist.lines(s.style, columns, page)...)
		}
	case viewStats:
		body = s.stats(columns, page)
	}
	for i := range lines - 2 {
		line := strings.Repeat(" ", columns)
		if i < len(body) {
			line = body[i]
			if !strings.Contains(line, "\x1b") {
				line = s.style.fit(line, columns)
			}
		}
		out = append(out, line)
	}
	return append(out, s.bold(s.style.fit(s.foot(), columns)))
}

func (s *screen) head(columns int) string {
	state := "live"
	if s.paused {
		state = "paused"
	}
	parts := []string{"top", oneline.Escape(s.server), state}
	if s.model.millis > 0 {
		parts = append(parts, time.UnixMilli(s.model.millis).UTC().Format("15:04:05Z"))
	}
	if s.view == viewClusters && s.board != nil {
		down := 0
		for _, c := range s.board.rows {
			if c.healthy < c.hosts {
				down++
			}
		}
		return strings.Join(append(parts, numfmt.Grouped(strconv.Itoa(len(s.board.rows)))+" clusters", numfmt.Grouped(strconv.Itoa(down))+" with unhealthy hosts"), "  ")
	}
	listed := " stats"
	if s.kind != "" {
		listed = " " + s.kind + "s"
	}
	parts = append(parts, numfmt.Grouped(strconv.Itoa(len(s.list)))+listed)
	if s.model.left > 0 {
		parts = append(parts, fmt.Sprintf("(%s left out: use a filter)", numfmt.Grouped(strconv.Itoa(s.model.left))))
	}
	if s.filter != "" {
		parts = append(parts, "filter "+oneline.Escape(s.filter))
	}
	line := strings.Join(parts, "  ")
	if s.model.millis > 0 && utf8.RuneCountInString(line) > columns {
		line = strings.Join(slices.Delete(parts, 3, 4), "  ") // without the time
	}
	return line
}

func (s *screen) foot() string {
	switch {
	case s.editing:
		return "filter: " + oneline.Escape(s.input) + "_"
	case s.message != "":
		return s.message
	case s.view == viewHelp:
		return "any key goes back"
	}
	return "q quit  / filter  s sort  p pause  z zero  enter histogram  g c clusters  ? help"
}

func (s *screen) bold(text string) string {
	return "\x1b[1m" + text + "\x1b[0m"
}

// colored returns a text in a color, if there are colors.
func (s *screen) colored(code, text string) string {
	if !s.style.Color {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Widths of the columns of stats. Narrow screens leave the last ones out.
const (
	valueWidth  = 12
	wideValue   = 27 // the greatest number in full
	rateWidth   = 9
	changeWidth = 9
	trendWidth  = 12
	agoWidth    = 8
)

// heads returns the widths of the name and the value, and which columns there are.
func heads(columns int) (name, value int, trend, change, ago bool) {
	value = valueWidth
	if columns >= 120 {
		value = wideValue
	}
	name = columns - (2 + 2 + value + 1 + rateWidth)
	if change = columns >= 60; change {
		name -= 1 + changeWidth
	}
	if trend = columns >= 72; trend {
		name -= 1 + trendWidth
	}
	if ago = columns >= 96; ago {
		name -= 1 + agoWidth
	}
	return name, value, trend, change, ago
}

// window moves the rows on the screen so that the selected one is there.
func (s *screen) window(page int) (from, to int) {
	s.selected = min(max(s.selected, 0), max(s.rows()-1, 0))
	s.offset = min(max(s.offset, s.selected-page+1), s.selected)
	return s.offset, min(s.offset+page, s.rows())
}

func (s *screen) stats(columns, page int) []string {
	st := s.style
	name, value, trend, change, ago := heads(columns)
	mark := func(column, title string) string {
		if s.column != column {
			return title
		}
		if s.descending() {
			return title + "v"
		}
		return title + "^"
	}
	line := "  " + st.fit(mark("name", "NAME"), name) + " " + st.fit(mark("type", "T"), 2) + st.right(mark("value", "VALUE"), value-1) + " " + st.right(mark("rate", "PER SEC"), rateWidth)
	if change {
		line += " " + st.right(mark("change", "CHANGE"), changeWidth)
	}
	if trend {
		line += " " + st.fit("TREND", trendWidth)
	}
	if ago {
		line += " " + st.right(mark("changed", "CHANGED"), agoWidth)
	}
	out := []string{s.bold(st.fit(line, columns))}
	from, to := s.window(page)
	for i := from; i < to; i++ {
		r := s.list[i]
		line := " "
		if i == s.selected {
			line = ">"
		}
		if s.pinned[r.name] {
			line += "*"
		} else {
			line += " "
		}
		line += st.fit(oneline.Escape(r.name), name) + " " + oneline.Escape(r.kind)[:min(1, len(r.kind))]
		if r.kind == "text" {
			out = append(out, st.fit(line+"  "+oneline.Escape(r.text), columns))
			continue
		}
		line += " " + st.right(st.fitted(numfmt.Grouped(oneline.Escape(r.text)), r.value, value-1), value-1) + " " + st.right(st.rate(r.rate, rateWidth), rateWidth)
		if change {
			line += " " + st.right(st.change(r.change(), changeWidth), changeWidth)
		}
		if trend {
			line += " " + st.fit(r.drawTrend(st, s.model.look), trendWidth)
		}
		if ago && r.changed != 0 {
			line += " " + st.right(numfmt.Age(time.Duration(s.model.millis-r.changed)*time.Millisecond), agoWidth)
		}
		if line = st.fit(line, columns); i == s.selected {
			line = "\x1b[7m" + line + "\x1b[0m"
		} else if r.rate != 0 {
			line = s.colored("32", line)
		}
		out = append(out, line)
	}
	return out
}

// drawTrend draws the last looks, or the quantiles of a histogram.
func (r *row) drawTrend(st Style, look int) string {
	if r.kind != "histogram" {
		values := r.trendAt(look, trendWidth)
		if r.kind == "gauge" { // from the least to the greatest
			least := slices.Min(values)
			for i := range values {
				values[i] -= least
			}
		}
		return st.levels(values)
	}
	if !r.recorded {
		return ""
	}
	return st.levels(r.quantiles[:]) + " " + st.measured(r.quantiles[2], r.unit, trendWidth-4)
}

func (s *screen) clusters(columns, page int) []string {
	if s.board == nil {
		return []string{"reading the clusters"}
	}
	if len(s.board.rows) == 0 {
		return []string{"No clusters are configured"}
	}
	st := s.style
	const hosts = 9
	cells, number := 5, 6
	if columns >= 100 {
		cells, number = 10, 8
	}
	left := columns - (2 + 1 + hosts + 1 + cells + 3*number + 1)
	name := max(12, left*2/5)
	why := max(0, left-name)
	out := []string{s.bold(st.fit("  "+st.fit("CLUSTER", name)+" "+st.right("HEALTHY", hosts)+" "+strings.Repeat(" ", cells)+st.right("CX", number)+st.right("RQ", number)+st.right("RQ/S", number)+" WHY", columns))}
	from, to := s.window(page)
	for i := from; i < to; i++ {
		c := &s.board.rows[i]
		line := "  "
		if i == s.selected {
			line = "> "
		}
		line += st.fit(oneline.Escape(c.name), name) + " " + st.right(fmt.Sprintf("%d/%d", c.healthy, c.hosts), hosts) + " " +
			st.bar(float64(c.healthy)/float64(max(c.hosts, 1)), cells) +
			st.right(st.number(c.active, number-1), number) + st.right(st.number(c.requests, number-1), number) + st.right(st.rate(c.rate, number-1), number) + " " + st.fit(oneline.Escape(c.why), why)
		line = st.fit(line, columns)
		switch {
		case i == s.selected:
			line = "\x1b[7m" + line + "\x1b[0m"
		case c.healthy < c.hosts:
			line = s.colored("31", line)
		}
		out = append(out, line)
	}
	return out
}

func help() []string {
	return []string{
		"q, Ctrl-C        quit",
		"/                edit the filter; Enter applies it, Esc does not",
		"1 to 6           sort by that column, again to reverse; 6 is the last change",
		"s                sort by the next column",
		"p                pause, go on",
		"Space            pin the stat on top, whatever the filter, or unpin it",
		"c                copy the stat, by a terminal that knows OSC 52",
		"z                changes count from now on",
		"j k, arrows      next, previous row; [ ] and PgUp, PgDn: a page; Home, End",
		"Enter            the distribution of a histogram",
		"g s, g h, g c    all stats, histograms, clusters; n asks for clusters at once",
		"Esc              back to the stats",
		"",
		"Counters and gauges change within a second, histograms when the server flushes.",
		"The trend of a histogram has its quantiles 0.5, 0.9 and 0.99 of the last",
		"interval as bars, and the last of them as a number.",
	}
}
