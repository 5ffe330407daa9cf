package pages

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/statsd-admin/statsd-admin/admin"
)

func showAudit(v *view) error {
	entries := v.site.srv.Audit(1000)
	wanted := v.query.Value("filter")
	v.Put(h("<form class='panel pad row' method='get' action='audit'><label class='grow'><span class='vh'>Filter by path, client or key</span><input type='search' name='filter' class='find' placeholder='Path, client, key' value='"),
		wanted, h("'></label><button type='submit' class='primary'>Filter</button></form>\n"))
	if wanted != "" {
		kept := entries[:0]
		for _, e := range entries {
			if mentions(&e, wanted) {
				kept = append(kept, e)
			}
		}
		entries = kept
	}
	v.summary = plural(len(entries), "entry")
	if len(entries) != 1 {
		v.summary = count(len(entries)) + " entries"
	}
	if list := v.site.srv.Temporary(); len(list) > 0 {
		v.panel("temporary-head", "Temporary settings", func() { v.actions("temporary", "/audit") }, func() { v.temporaryTable(list) })
	}
	v.panel("log", "Changes, newest first", func() { v.actions("audit-log", "/audit?limit=1000") }, func() {
		if len(entries) == 0 && wanted != "" {
			v.unmatched("change")
			return
		}
		v.auditTable("audit-log", entries)
	})
	return nil
}

// mentions reports whether a field of an entry contains a text.
func mentions(e *admin.AuditEntry, text string) bool {
	fields := []string{e.Path, e.Peer, e.Principal.Name, e.Reason, strings.Join(e.Keys, " ")}
	for _, c := range e.Changes {
		fields = append(fields, c.What)
	}
	return slices.ContainsFunc(fields, func(f string) bool {
		return strings.Contains(strings.ToLower(f), strings.ToLower(text))
	})
}

// auditTable appends entries of the audit log.
func (v *view) auditTable(id string, entries []admin.AuditEntry) {
	if len(entries) == 0 {
		v.empty("No changes since the start.")
		return
	}
	g := v.grid(id, "Audit log", "cards dense", order{}, column{head: "Entry", class: "num"}, column{head: "Time"}, column{head: "Who"}, column{head: "Request"}, column{head: "Change"}, column{head: "Result", class: "num"}, column{head: "Undo", unlisted: true})
	for i := range entries {
		e := &entries[i]
		g.row("")
		g.num(strconv.FormatUint(e.Seq, 10))
		g.cell(isoTime(e.Time), func() { v.when(e.Time) })
		who := cmp.Or(e.Principal.Name, e.Peer, "the program")
		g.cell(who, nil)
		g.cell(strings.TrimSpace(e.Method+" "+e.Path), v.text(h("<code class='wrap'>"), e.Path, h("</code>")))
		var changes []string
		for _, c := range e.Changes {
			changes = append(changes, c.What+" "+c.Before+" > "+c.After)
		}
		g.cell(strings.Join(changes, ", "), func() { v.changes(e) })
		g.cell(fmt.Sprint(e.Status), func() {
			class := "quiet"
			if e.Status >= 400 {
				class = "bad"
			}
			v.Put(h("<span class='"), class, h("'>"), e.Status, " ", e.Reason, h("</span>"))
			switch {
			case e.DryRun:
				v.Put(" dry run")
			case e.UndoneBy != 0:
				v.Put(" undone by ", e.UndoneBy)
			}
		})
		g.cell("", func() { v.undo(e, "Undo") })
	}
	g.end()
}

// changes appends the changes of an entry, or the names of its parameters.
func (v *view) changes(e *admin.AuditEntry) {
	if len(e.Changes) == 0 {
		if len(e.Keys) == 0 {
			return
		}
		v.Put(h("<span class='quiet'>"), strings.Join(e.Keys, ", "), h("</span>"))
		return
	}
	const most = 20
	for _, c := range e.Changes[:min(most, len(e.Changes))] {
		v.change(c)
		v.Put(" ")
	}
	if more := len(e.Changes) - most; more > 0 {
		v.Put(fmt.Sprintf("and %d more", more))
	}
}
