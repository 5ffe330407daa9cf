package pages

import (
	"cmp"
	"strconv"
	"time"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/internal/numfmt"
)

// ttl appends the field that makes a change temporary.
func (v *view) ttl(what string) {
	v.Put(h("<label><span class='vh'>How long, "), what, h("</span>"))
	v.lifetimes()
	v.Put(h("</label>"))
}

// lifetimes appends the field that chooses how long changes last.
func (v *view) lifetimes() {
	chosen, _ := v.lifetime()
	v.Put(h("<select name='ttl'>"))
	for _, x := range lifetimes {
		v.option(x.value, x.text, x.value == chosen)
	}
	v.Put(h("</select>"))
}

// lifetimes says how long a change can last.
var lifetimes = [...]struct{ value, text string }{{"", "until changed"}, {"10m", "for 10 minutes"}, {"1h", "for an hour"}, {"24h", "for a day"}}

// lifetime returns how long changes of the view last.
func (v *view) lifetime() (value, text string) {
	got := v.query.Value("ttl")
	for _, x := range lifetimes {
		if x.value == got {
			return x.value, x.text
		}
	}
	return lifetimes[0].value, lifetimes[0].text
}

// dryRun appends the box that makes a form change nothing.
func (v *view) dryRun() {
	v.Put(h("<label class='check'><input type='checkbox' name='dry_run' value='1'> <span>Dry run</span> <span class='quiet spare'>only show what would change</span></label>"))
}

// left appends how long a setting stays temporary.
func (v *view) left(settings, name string) {
	if v.temporary == nil {
		v.temporary = make(map[[2]string]admin.Temporary)
		for _, t := range v.site.srv.Temporary() {
			v.temporary[[2]string{t.Settings, t.Name}] = t
		}
	}
	if t, ok := v.temporary[[2]string{settings, name}]; ok {
		v.Put(h(" <span class='badge info'>"))
		v.icon("info")
		v.Put(numfmt.Span(v.remaining(&t)), " left, then ", cmp.Or(t.BackTo, "removed"), h("</span>"))
	}
}

// remaining returns the rest of the time of a temporary setting in whole seconds.
func (v *view) remaining(t *admin.Temporary) time.Duration {
	return (max(t.Until.Sub(v.now), 0) + time.Second - 1).Truncate(time.Second)
}

// temporaryTable appends the settings whose previous values return.
func (v *view) temporaryTable(list []admin.Temporary) {
	g := v.grid("temporary", "Temporary settings", "cards dense", order{}, column{head: "Setting"}, column{head: "Value"}, column{head: "Then"},
		column{head: "Time left", class: "num"}, column{head: "Entry", class: "num"})
	for i := range list {
		t := &list[i]
		g.row("")
		g.head(t.Name, v.text(h("<code class='wrap'>"), t.Name, h("</code> <span class='quiet'>"), t.Settings, h("</span>")))
		g.cell(t.Value, nil)
		g.cell(t.BackTo, func() { v.orNone(t.BackTo) })
		left := v.remaining(t)
		g.cell(strconv.FormatFloat(left.Seconds(), 'f', 0, 64), func() { v.Put(numfmt.Span(left)) })
		g.num(strconv.FormatUint(t.Seq, 10))
	}
	g.end()
}

// undo appends the button that restores the values before an entry of the audit log.
func (v *view) undo(e *admin.AuditEntry, label string) {
	if !e.Undoable() || !v.permits("/audit/undo") || !v.permits(e.Path) {
		return
	}
	seq := strconv.FormatUint(e.Seq, 10)
	v.Put(h("<form method='post' action='../audit/undo' data-effect='The values before the change apply again.'><input type='hidden' name='id' value='"), seq,
		h("'><button type='submit'>"), label, h("<span class='vh'> change "), seq, h("</span></button></form>"))
}
