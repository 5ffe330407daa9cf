package pages

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/internal/markup"
	"github.com/statsd-admin/statsd-admin/internal/numfmt"
	"github.com/statsd-admin/statsd-admin/internal/product"
)

// The content types of the pages.
const (
	typeHTML = "text/html; charset=UTF-8"
	typeTSV  = "text/tab-separated-values; charset=UTF-8"
)

// send sends the page, or the table of it that was asked for.
func (v *view) send(w *admin.Response, start time.Time) error {
	w.SetStatus(v.status)
	if v.tsv.id != "" && v.status == 200 {
		if !v.tsv.found {
			return &admin.Error{Status: 404, Msg: "the page has no such table\n"}
		}
		w.SetType(typeTSV)
		_, err := w.Write(v.tsv.rows)
		return err
	}
	w.SetType(typeHTML)
	main := v.Page
	v.Page = markup.Page{}
	v.top()
	if _, err := w.Write(v.Bytes()); err != nil {
		return err
	}
	if _, err := w.Write(main.Bytes()); err != nil {
		return err
	}
	n := v.Len() + main.Len()
	v.Page = markup.Page{}
	v.bottom(n, time.Since(start))
	_, err := w.Write(v.Bytes())
	return err
}

// asset returns the path of an asset relative to the pages.
func (v *view) asset(name string) string {
	return strings.TrimPrefix(v.site.srv.Assets().Path(name), Prefix)
}

// top appends everything above the content of the page.
func (v *view) top() {
	name := v.site.srv.Product()
	v.Put(h("<!DOCTYPE html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n" +
		"<meta name='viewport' content='width=device-width, initial-scale=1'>\n<meta name='color-scheme' content='light dark'>\n"))
	if v.again {
		v.Put(h("<meta http-equiv='refresh' content='1'>\n"))
	}
	v.Put(h("<title>"))
	if v.summary != "" {
		v.Put(v.summary, " · ")
	}
	v.Put(v.title, " · ", name, h("</title>\n<link rel='stylesheet' href='"), v.asset("admin.css"),
		h("'>\n<link rel='icon' href='"), v.asset("icon.svg"), h("' type='image/svg+xml'>\n<script src='"), v.asset("theme.js"),
		h("'></script>\n<script type='module' src='"), v.asset("admin.js"), h("'></script>\n<script type='module' src='"), v.asset("watch.js"), h("'></script>\n"))
	if v.moves {
		v.scripts = append(v.scripts, "past.js", "live.js")
	}
	if style := v.asset(v.page.path + ".css"); style != "" {
		v.Put(h("<link rel='stylesheet' href='"), style, h("'>\n"))
	}
	if v.page.path == "stats" {
		v.scripts = append(v.scripts, "rows.js")
		if v.moves {
			v.scripts = append(v.scripts, "order.js")
		}
	}
	for _, script := range v.scripts {
		v.Put(h("<script type='module' src='"), v.asset(script), h("'></script>\n"))
	}
	v.Put(h("</head>\n<body>\n" +
		"<a class='skip' href='#main'>Skip to content</a>\n"))
	v.symbols()
	v.header(name)
	v.navigation()
	v.Put(h("<main id='main' tabindex='-1'>\n<div class='head title'><h1>"), v.title, h("</h1><span class='quiet'>"), v.summary, h("</span></div>\n"))
	v.Put(h("<div class='note warn' id='watch' role='status' hidden>"))
	v.icon("warn")
	v.Put(h("<p> <span aria-hidden='true'></span></p><form class='row end'><label><span class='vh'>Token or password</span><input type='password' name='token' placeholder='Token or password' autocomplete='current-password'></label><button>Retry now</button></form></div>\n" +
		"<div class='note warn' id='skew' role='status' hidden>"))
	v.icon("warn")
	v.Put(h("<p></p></div>\n"))
	v.done()
	v.Put(h("<div class='note warn' id='draining' role='status'"))
	if v.site.srv.State() != "DRAINING" {
		v.Put(h(" hidden"))
	}
	v.Put(h(">"))
	v.icon("warn")
	v.Put(h("<p>The server is draining: it fails its health checks, so that load balancers send it no new traffic.</p></div>\n<div id='content'>\n"))
}

func stateMeaning(state string) string {
	switch state {
	case "LIVE":
		return "ok"
	case "DRAINING":
		return "warn"
	}
	return "info"
}

// state appends the state of the server. The script keeps it up to date, and the uptime.
func (v *view) state(class string, attributes h) {
	state := v.site.srv.State()
	v.Put(h("<span"), attributes, h(" data-state='"), class, h("' class='"), class, " ", stateMeaning(state), h("'>"))
	v.icon(stateMeaning(state))
	v.Put(state, h("</span>"))
}

// uptime appends how long the process has been running.
func (v *view) uptime(d time.Duration) {
	v.Put(h("<span data-uptime data-value='"), exactValue(d.Truncate(time.Second).Seconds()), h("'>"), numfmt.Span(d), h("</span>"))
}

// header appends the product, the state and the identity of the server.
func (v *view) header(name string) {
	v.Put(h("<header class='top'>\n<a class='brand' href='./'><svg viewBox='0 0 18 18' aria-hidden='true'><path d='M1 17v-6h3v6zM5.5 17V5h3v12zM10 17V1h3v16zM14.5 17V8h3v9z'/></svg>"),
		name, h("</a>\n"))
	v.state("badge", " id='state'")
	v.Put(h("\n<dl class='facts'>"))
	if v.src.Info != nil {
		info := v.src.Info()
		if info.Node != nil {
			v.fact("Node", info.Node.ID)
			v.fact("Cluster", info.Node.Cluster)
		}
		if version := product.Version(info.Version); version != "" {
			v.Put(h("<div class='spare'><dt>Version</dt><dd>"), version, h("</dd></div>")) // the footer has it too
		}
		v.Put(h("<div><dt>Up</dt><dd>"))
		v.uptime(info.UptimeCurrentEpoch)
		v.Put(h("</dd></div>"))
	}
	if who := v.r.Principal(); who.Name != "" || who.Role != admin.RoleAdmin {
		v.fact("Role", who.Role.String())
	}
	if v.site.srv.Mode() == admin.ModeReadOnly {
		v.fact("Mode", "read only")
	}
	v.Put(h("</dl>\n<div class='tools scripted'><fieldset class='seg'><legend class='vh'>Theme</legend>"))
	for _, theme := range [...]string{"auto", "light", "dark"} {
		v.Put(h("<label><input type='radio' name='theme' value='"), theme, h("'>"), capital(theme), h("</label>"))
	}
	v.Put(h("</fieldset>"))
	v.refresh()
	v.Put(h("<button type='button' id='pause' aria-pressed='false'"))
	if !v.moves && !slices.Contains(v.scripts, "circuits.js") {
		v.Put(h(" hidden"))
	}
	v.Put(h(">Pause</button><button type='button' id='help-button' aria-haspopup='dialog' title='Keyboard shortcuts'>?</button></div>\n</header>\n"))
}

// refresh appends the choice of the time between two updates: of events where there is
// a stream, else of the whole page, but for opened files. Circuits, which their own script fills, have
// none.
func (v *view) refresh() {
	opens := slices.Contains(v.scripts, "config.js")
	if len(v.scripts) > 0 && !v.moves && !opens && !strings.HasPrefix(v.page.path, "stat") {
		return
	}
	first, times := "No refresh", []string{"1", "2", "5", "10", "30"}
	v.Put(h("<label><span class='vh'>Refresh</span><select id='refresh'"))
	if v.moves {
		first, times = "Live", times[1:]
		v.Put(h(" data-stream='"))
		if v.page.path == "" || v.page.path == "stat" {
			v.Put("5") // seconds until what has no stream is rendered again
		}
		v.Put(h("'"))
	}
	if opens {
		v.Put(h(" data-part='fresh'"))
	}
	v.Put(h(">"))
	v.option("", first, false)
	for _, s := range times {
		v.option(s, "every "+s+thin+"s", false)
	}
	v.Put(h("</select></label>"))
}

// navigation appends the links to the pages that the client may open.
func (v *view) navigation() {
	v.Put(h("<nav aria-label='Pages'><ul><li><a href='../' data-key='m'>Home</a></li>"))
	for i := range v.site.rows {
		page := &v.site.rows[i]
		if page.nav == "" || !v.permits(page.needs) {
			continue
		}
		v.Put(h("<li><a href='"), url(page.path), h("' data-key='"), page.key, h("'"))
		if page == v.page {
			v.Put(h(" aria-current='page'"))
		}
		v.Put(h(">"), page.nav)
		v.attention(page.path)
		v.Put(h("</a></li>"))
	}
	v.Put(h("</ul></nav>\n"))
}

// attention appends the number of things on a page that need attention.
func (v *view) attention(page string) {
	badge := func(n int, meaning, what string) {
		if n > 0 {
			v.Put(h(" <span class='badge "), meaning, h("'>"), count(n), h("<span class='vh'>"), what, h("</span></span>"))
		}
	}
	switch page {
	case "clusters":
		sick := v.healthNow()
		badge(sick.unhealthy, "bad", " unhealthy")
	case "certs":
		n, what, meaning := v.expiring()
		if one, alone := strings.CutPrefix(what, count(n)); alone {
			badge(n, meaning, one)
		} else {
			badge(n, meaning, ": "+what)
		}
	}
}

// done shows the change that brought the client back to the page.
func (v *view) done() {
	e, ok := v.back()
	if !ok {
		return
	}
	meaning, what := "ok", "Done: "
	if e.DryRun {
		meaning, what = "info", "Nothing was changed. It would be: "
	}
	v.note(meaning, "done", func() {
		v.Put(what, h("<code>"), e.Path, h("</code>"))
		for i, c := range e.Changes {
			if i == 3 {
				v.Put(fmt.Sprintf(", and %d more", len(e.Changes)-i))
				break
			}
			if i == 0 {
				v.Put(": ")
			} else {
				v.Put(", ")
			}
			v.change(c)
		}
		v.Put(h(" <a href='audit'>Audit</a>"))
	})
}

// back returns the change that brought the client back to the page.
func (v *view) back() (e admin.AuditEntry, ok bool) {
	seq, _ := strconv.ParseUint(v.query.Value("done"), 10, 64)
	for _, e := range v.site.srv.Audit(100) {
		if e.Seq == seq { // from 1
			return e, true
		}
	}
	return e, false
}

// change appends what changed from what to what.
func (v *view) change(c admin.Change) {
	v.Put(h("<span class='change'><code>"), c.What, h("</code> "), shown(c.Before), " → ", shown(c.After), h("</span>"))
}

// bottom appends everything below the content of the page.
func (v *view) bottom(bytes int, took time.Duration) {
	v.Put(h("</div>\n</main>\n<footer><span>"), v.site.srv.Product())
	if v.src.Info != nil {
		v.Put(" ", product.Version(v.src.Info().Version))
	}
	number, unit := numfmt.Seconds(took.Seconds())
	v.Put(h("</span><span>rendered at "))
	v.when(v.now)
	v.Put(" in ", number+thin+unit, h("</span><span>"), sizeText(float64(bytes)), h("</span></footer>\n</body>\n</html>\n"))
}
