package pages

import (
	"errors"
	neturl "net/url"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/internal/markup"
	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/store"
)

// view renders one page for one request. The embedded page is its main part.
type view struct {
	markup.Page

	site   *site
	page   *row
	r      *admin.Request
	query  admin.Query
	src    admin.Sources
	now    time.Time
	status int

	title   string // heading
	summary string // beside the heading, and in front of the title of the window
	tsv     export
	scripts []string // assets of the page besides the shell's
	moves   bool     // the page has a stream
	again   bool     // the page is not complete: browsers load it again

	temporary map[[2]string]admin.Temporary // by settings and name; nil: not asked for yet
}

// permits reports whether the client may use an endpoint.
func (v *view) permits(path string) bool { return v.site.srv.Permits(v.r, path) }

// url returns a relative link to a page with parameters, given as name and value in
// turn. Empty values are left out; flags have the value "1".
func url(page string, pairs ...string) string {
	var b strings.Builder
	b.WriteString(page)
	if page == "" {
		b.WriteString("./")
	}
	mark := byte('?')
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			continue
		}
		b.WriteByte(mark)
		mark = '&'
		b.WriteString(escapeQuery(pairs[i]) + "=" + escapeQuery(pairs[i+1]))
	}
	return b.String()
}

// escapeQuery returns s with each byte escaped that is not unreserved.
func escapeQuery(s string) string { return strings.ReplaceAll(neturl.QueryEscape(s), "+", "%20") }

// here returns a link to the current view with some parameters changed; an empty value
// removes a parameter.
func (v *view) here(pairs ...string) string {
	var all []string
	for _, p := range v.query.Distinct() {
		if p.Name == "done" || p.Name == "tsv" {
			continue
		}
		value := p.Value
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == p.Name {
				value = pairs[i+1]
			}
		}
		all = append(all, p.Name, value)
	}
	for i := 0; i < len(pairs); i += 2 {
		if !v.query.Has(pairs[i]) {
			all = append(all, pairs[i], pairs[i+1])
		}
	}
	return url(v.page.path, all...)
}

// aside returns what f appends, for a later place on the page.
func (v *view) aside(f func()) *markup.Page {
	main := v.Page
	v.Page = markup.Page{}
	f()
	part := v.Page
	v.Page = main
	return &part
}

// stream appends the address of the stream of changes that the script reads, with the
// given parameters of /stats/stream. It reports whether there is one.
func (v *view) stream(pairs ...string) bool {
	if !v.permits(streamPath) {
		return false
	}
	v.moves = true
	v.Put(h("<div hidden data-stream-filter='"), ".."+url(streamPath, pairs...), h("'></div>"))
	return true
}

// noStream is stream for a view that has no stats yet: the script looks for the first.
func (v *view) noStream() {
	if v.permits(streamPath) {
		v.moves = true
		v.Put(h("<div hidden data-stream-filter=''></div>"))
	}
}

// streamPath is the endpoint that streams changes of stats.
const streamPath = "/stats/stream"

// names returns the lines of a parameter, at most that many. Browsers end the lines of
// hidden fields with CRLF.
func (v *view) names(parameter string, most int) (names []string) {
	for name := range strings.Lines(v.query.Value(parameter)) {
		if name = strings.TrimRight(name, "\r\n"); name != "" && len(names) < most {
			names = append(names, name)
		}
	}
	return names
}

// namesValue is the reverse of names: the value of a parameter with the last of names that
// it has room for.
func namesValue(names []string, most int) string {
	names = names[max(0, len(names)-most):]
	for {
		if value := strings.Join(names, "\n"); len(value) <= maxValue {
			return value
		}
		names = names[1:]
	}
}

// keep appends hidden fields that make a form keep parameters.
func (v *view) keep(names ...string) {
	for _, name := range names {
		if value := v.query.Value(name); value != "" {
			v.Put(h("<input type='hidden' name='"), name, h("' value='"), value, h("'>"))
		}
	}
}

// option appends an option of a field.
func (v *view) option(value, label string, chosen bool) {
	v.Put(h("<option"))
	if value != label {
		v.Put(h(" value='"), value, h("'"))
	}
	if chosen {
		v.Put(h(" selected"))
	}
	v.Put(h(">"), label, h("</option>"))
}

// fact appends a name and a value of a strip, unless the value is empty.
func (v *view) fact(name, value string) {
	if value != "" {
		v.Put(h("<div><dt>"), name, h("</dt><dd>"), value, h("</dd></div>"))
	}
}

// fine appends that there is nothing to worry about.
func (v *view) fine(text string) {
	v.Put(h("<p class='pad'>"))
	v.word("ok", text)
	v.Put(h("</p>\n"))
}

// nothing shows a page that has nothing to show.
func (v *view) nothing(title string, parts ...any) error {
	v.panel("none", title, nil, func() { v.empty(parts...) })
	return nil
}

// choice returns the value of a parameter if it is allowed, otherwise the first allowed
// value.
func (v *view) choice(name string, allowed ...string) string {
	got := v.query.Value(name)
	for _, a := range allowed {
		if got == a {
			return a
		}
	}
	return allowed[0]
}

// problem shows an error of the client's input and sets the status. Other errors are
// returned.
func (v *view) problem(err error) error {
	if err := v.statsError(err); err != nil {
		return err
	}
	v.note("bad", "filter-error", func() { v.Put(problemText(err)) })
	return nil
}

// problemStatus returns the status of an error of the client's input, 0 for others.
func problemStatus(err error) int {
	var e *admin.Error
	switch {
	case errors.Is(err, render.ErrTooExpensive):
		return 400
	case errors.As(err, &e) && (e.Status == 400 || e.Status == 503):
		return e.Status
	}
	return 0
}

// problemText is what such an error says.
func problemText(err error) string {
	if e, ok := errors.AsType[*admin.Error](err); ok {
		return strings.TrimSpace(e.Msg)
	}
	return "The filter takes too long. Anchor it with ^ or use fewer alternatives."
}

// note appends a line with a meaning: ok, info, warn or bad.
func (v *view) note(meaning, id string, body func()) {
	v.Put(h("<div class='note "), meaning, h("'"))
	if meaning == "bad" || meaning == "warn" {
		v.Put(h(" role='alert'"))
	} else {
		v.Put(h(" role='status'"))
	}
	if id != "" {
		v.Put(h(" id='"), id, h("'"))
	}
	v.Put(h(">"))
	v.icon(meaning)
	v.Put(h("<p>"))
	body()
	v.Put(h("</p></div>\n"))
}

// empty appends what a page shows instead of a table without rows.
func (v *view) empty(parts ...any) {
	v.Put(h("<p class='empty'>"))
	v.Put(parts...)
	v.Put(h("</p>\n"))
}

// unmatched says that a filter matches nothing of a kind, with a link to all.
func (v *view) unmatched(kind string) {
	v.empty("No ", kind, " matches. ", h("<a href='"), v.page.path, h("'>Show all</a>"))
}

// missing says in one sentence which setting turns on what would be here.
func (v *view) missing(parts ...any) {
	v.Put(h("<p class='empty' id='missing'>"))
	v.Put(parts...)
	v.Put(h("</p>\n"))
}

// panel appends a titled part of the page. actions, if not nil, appends to the right
// end of its head.
func (v *view) panel(id, title string, actions, body func()) {
	v.panelBeside(id, title, func() {}, actions, body)
}

// panelBeside is panel with something beside the title.
func (v *view) panelBeside(id, title string, beside, actions, body func()) {
	v.Put(h("<section class='panel' aria-labelledby='"), id, h("'><div class='head'><h2 id='"), id, h("'>"), title, h("</h2>"))
	beside()
	if actions != nil {
		v.Put(h("<div class='row end'>"))
		actions()
		v.Put(h("</div>"))
	}
	v.Put(h("</div>\n"))
	body()
	v.Put(h("</section>\n"))
}

// actions appends the links that every table has: its values as TSV, and the requests
// that return the shown values and the data behind them. Where the page has a sentence
// instead of an empty table, the TSV is empty.
func (v *view) actions(table, request string) {
	v.tsv.found = v.tsv.found || v.tsv.id == table
	v.Put(h("<a class='btn' data-copy='tsv' data-k='tsv' href='"), v.here("tsv", table), h("'>TSV</a>"))
	v.startRequest()
	v.curl(Prefix + strings.TrimPrefix(v.here("tsv", table), "./"))
	v.curl(request)
	v.Put(h("</details>"))
}

// request appends the command that fetches the data of the page. More words are
// arguments of curl, in quotes.
func (v *view) request(path string, arguments ...string) {
	v.startRequest()
	v.curl(path, arguments...)
	v.Put(h("</details>"))
}

func (v *view) startRequest() {
	v.Put(h("<details class='req'><summary class='btn' data-k='request'>Request</summary>"))
}

// curl appends a command.
func (v *view) curl(path string, arguments ...string) {
	v.Put(h("<code class='wrap'>curl -s "))
	for _, a := range arguments {
		v.Put(a, " ")
	}
	v.Put("'", strings.ReplaceAll(v.r.Base()+path, "'", "%27"), h("'</code>"))
}

// stats calls f with a view of the store.
func (v *view) stats(f func(*store.View)) {
	list := v.site.srv.Store().View()
	defer list.Close()
	f(list)
}
