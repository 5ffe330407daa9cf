package pages

import (
	"cmp"
	"slices"
	"strings"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/internal/redact"
	"github.com/statsd-admin/statsd-admin/server/layers"
)

func showRuntime(v *view) error {
	if v.src.Runtime == nil {
		return v.nothing("Runtime", "The server has no runtime values.")
	}
	values := v.src.Runtime.Snapshot()
	wanted := v.query.Value("filter")
	v.summary = plural(values.Len(), "key")
	key := v.query.Value("key")
	back, _ := v.back()
	if back.Path != "/runtime_modify" || back.DryRun {
		back.Changes = nil
	} else {
		key = "" // it has its value
	}
	edit := v.permits("/runtime_modify")
	if edit && values.AdminLayer() < 0 {
		edit = false
		v.panel("edit", "Set a value", nil, func() {
			v.missing("No value can be changed here; a layer with ", h("<code>admin_layer</code> in <code>layered_runtime</code>"), " turns this on.")
		})
	}
	if edit {
		v.editForm(values, key)
	}
	v.Put(h("<form class='panel pad row' method='get' action='runtime'><label class='grow'><span class='vh'>Filter by key</span><input type='search' name='filter' class='find' placeholder='Filter by key' value='"),
		wanted, h("'></label><button type='submit'>Filter</button></form>\n"))
	v.panel("values-head", "Values", func() { v.actions("values", "/runtime") }, func() { v.runtimeTable(values, edit, wanted, key, back.Changes) })
	return nil
}

// editForm appends the form that names a key, and for a new key the form that sets its
// value. That of a known key is in its row.
func (v *view) editForm(values *layers.Snapshot, key string) {
	v.panel("edit", "Set a value", nil, func() {
		if _, known := values.Get(key); key == "" || known {
			v.Put(h("<form class='pad row' method='get' action='runtime'>"))
			v.keep("filter")
			v.Put(h("<label class='grow'><span class='vh'>Key</span><input type='text' name='key' class='find' list='keys' placeholder='Key' autocomplete='off' required></label><button type='submit'>Continue</button><datalist id='keys'>"))
			n := 0
			for k := range values.All() {
				if n++; n > 500 {
					break
				}
				v.Put(h("<option value='"), k, h("'>"))
			}
			v.Put(h("</datalist></form>\n"))
			return
		}
		v.valueForm(values, key)
	})
}

// valueForm appends the form that sets the value of a key.
func (v *view) valueForm(values *layers.Snapshot, key string) {
	value, known := values.Get(key)
	own, above := v.holders(values, key)
	effect := "The value takes effect at once."
	if above != "" {
		effect = "The value of the layer " + above + " stays in effect."
	}
	v.Put(h("<form class='pad stack' method='post' action='../runtime_modify' data-keep data-effect='"), effect, h("'><p><label for='value'>Value of <code class='wrap'>"), key, h("</code></label>"))
	if known {
		v.Put(h(" <span class='quiet'>now "), shown(redact.Masked(key, value)), h("</span>"))
	} else {
		v.Put(h(" <span class='quiet'>new</span>"))
	}
	v.Put(h("</p><div class='row'><input type='text' class='find grow' id='value' name='"), key, h("' autocomplete='off' autofocus value='"))
	if redact.Masked(key, value) == value {
		v.Put(value)
	}
	v.Put(h("'>"))
	v.ttl(key)
	v.dryRun()
	v.Put(h("<button type='submit' class='primary'>Set value</button><a class='btn cancel' href='"), v.here("key", ""), h("'>Cancel</a></div></form>\n"))
	switch {
	case above != "":
		v.Put(h("<p class='pad quiet line'>The value comes from the layer <code class='wrap'>"), above, h("</code>, which is above the admin layer: a value that is set here has no effect.</p>\n"))
	case known && !own:
		v.Put(h("<p class='pad quiet line'>The value comes from a layer below. It can be overridden, not deleted.</p>\n"))
	}
}

// holders reports whether the admin layer has a key, and returns the name of the last
// layer above it that does.
func (v *view) holders(values *layers.Snapshot, key string) (own bool, above string) {
	changed := values.AdminLayer()
	for k, x := range values.All() {
		if k != key {
			continue
		}
		for i, value := range x.PerLayer {
			switch {
			case value != "" && i == changed:
				own = true
			case value != "" && i > changed:
				above = values.Layers()[i]
			}
		}
	}
	return own, above
}

// shown returns a value as changes show it.
func shown(value string) string {
	return cmp.Or(value, "(none)")
}

// runtimeTable appends the values. The row of key has the form that sets it.
func (v *view) runtimeTable(values *layers.Snapshot, edit bool, wanted, key string, changes []admin.Change) {
	if values.Len() == 0 {
		v.empty("There are no runtime values. A layer in ", h("<code>layered_runtime</code> sets some."))
		return
	}
	offset, limit := v.window("200", "1000")
	columns := []column{{head: "Key"}, {head: "Value"}}
	for _, n := range values.Layers() {
		columns = append(columns, column{head: "Layer " + n})
	}
	if edit {
		columns = append(columns, column{head: "Change", unlisted: true})
	}
	shows := func(name string) bool {
		return edit && name == key || strings.Contains(strings.ToLower(name), strings.ToLower(wanted))
	}
	total, rows := 0, 0
	for name := range values.All() {
		if shows(name) {
			total++
		}
	}
	if total == 0 {
		v.unmatched("key")
		return
	}
	g := v.grid("values", "Runtime values", "cards dense", order{}, columns...)
	at := 0
	for name, x := range values.All() {
		if !shows(name) {
			continue
		}
		asked := edit && name == key
		if at++; (at <= offset || rows >= limit) && !asked {
			continue
		}
		rows++
		if slices.ContainsFunc(changes, func(c admin.Change) bool { return c.What == name }) {
			g.row("changed")
		} else {
			g.row("")
		}
		g.head(name, v.text(h("<code class='wrap'>"), name, h("</code>")))
		final := redact.Masked(name, x.Final)
		g.cell(final, func() {
			v.Put(h("<b class='wrap'>"), final, h("</b>"))
			v.left("runtime", name)
		})
		for _, value := range x.PerLayer {
			value = redact.Masked(name, value)
			g.cell(value, func() { v.orNone(value) })
		}
		if edit {
			g.cell("", func() {
				v.Put(h("<div class='row'><a class='btn' href='"), v.here("key", name, "done", ""), h("'>Change<span class='vh'> "), name, h("</span></a>"))
				if x.PerLayer[values.AdminLayer()] != "" {
					v.Put(h("<form method='post' action='../runtime_modify' data-keep data-effect='The value of the lower layers applies again.'><input type='hidden' name='"), name,
						h("' value=''><button type='submit'>Remove override<span class='vh'> of "), name, h("</span></button></form>"))
				}
				v.Put(h("</div>"))
			})
		}
		if asked {
			g.wide("sel", func() { v.valueForm(values, name) })
		}
	}
	g.end()
	v.pager(min(offset, total), rows, total, limit, narrower)
}
