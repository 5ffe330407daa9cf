package pages

import (
	"strings"

	"github.com/statsd-admin/statsd-admin/internal/redact"
	"github.com/statsd-admin/statsd-admin/server/layers"
)

func showRuntime(v *view) error {
	if v.src.Runtime == nil {
		v.panel("none", "Runtime", nil, func() { v.empty("The server has no runtime values.") })
		return nil
	}
	values := v.src.Runtime.Snapshot()
	names := values.Layers()
	wanted := v.query.Value("filter")
	v.summary = plural(values.Len(), "key")
	if v.permits("/runtime_modify") {
		v.editForm(values)
	}
	v.Put(h("<form class='panel pad row' method='get' action='runtime'><label class='grow'><span class='vh'>Filter by key</span><input type='search' name='filter' class='find' placeholder='Filter by key' value='"),
		wanted, h("'></label><button type='submit'>Filter</button></form>\n"))
	v.panel("values-head", "Values", func() { v.actions("values", "/runtime") }, func() { v.runtimeTable(values, names, wanted) })
	return nil
}

// editForm appends the form that names a key, and for a named key the form that sets
// its value.
func (v *view) editForm(values *layers.Snapshot) {
	key := v.query.Value("key")
	v.panel("edit", "Set a value", nil, func() {
		if key == "" {
			v.Put(h("<form class='pad row' method='get' action='runtime'>"))
			v.keep("filter")
			v.Put(h("<label class='grow'><span class='vh'>Key</span><input type='text' name='key' class='find' list='keys' placeholder='Key, new or known' autocomplete='off' required></label><button type='submit'>Continue</button><datalist id='keys'>"))
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
		value, known := values.Get(key)
		v.Put(h("<form class='pad stack' method='post' action='../runtime_modify' data-keep data-effect='The value takes effect at once.'><p><label for='value'>Value of <code class='wrap'>"), key, h("</code></label>"))
		if known {
			v.Put(h(" <span class='quiet'>now "), shown(redact.Masked(key, value)), h("</span>"))
		} else {
			v.Put(h(" <span class='quiet'>new</span>"))
		}
		v.Put(h("</p><div class='row'><input type='text' class='find grow' id='value' name='"), key, h("' autocomplete='off' value='"))
		if redact.Masked(key, value) == value {
			v.Put(value)
		}
		v.Put(h("'>"))
		v.ttl(key)
		v.dryRun()
		v.Put(h("<button type='submit' class='primary'>Set value</button><a class='btn' href='"), v.here("key", ""), h("'>Cancel</a></div></form>\n"))
		if v.overridden(values, key) {
			v.Put(h("<form class='pad row line' method='post' action='../runtime_modify' data-keep data-effect='The value of the lower layers applies again.'><input type='hidden' name='"), key,
				h("' value=''><button type='submit'>Remove override</button><span class='quiet'>The value of the lower layers applies again.</span></form>\n"))
		} else if known {
			v.Put(h("<p class='pad quiet line'>The value comes from a layer below. It can be overridden, not deleted.</p>\n"))
		}
	})
}

// overridden reports whether the last layer, which the interface writes, has the key.
func (v *view) overridden(values *layers.Snapshot, key string) bool {
	for k, x := range values.All() {
		if k == key {
			return len(x.PerLayer) > 0 && x.PerLayer[len(x.PerLayer)-1] != ""
		}
	}
	return false
}

func shown(value string) string {
	if value == "" {
		return "(none)"
	}
	return value
}

func (v *view) runtimeTable(values *layers.Snapshot, names []string, wanted string) {
	if values.Len() == 0 {
		v.empty("There are no runtime values. Layers of the configuration and the form above add some.")
		return
	}
	offset, limit := v.window("200", "1000")
	columns := []column{{head: "Key"}, {head: "Value"}}
	for _, n := range names {
		columns = append(columns, column{head: "Layer " + n})
	}
	edit := v.permits("/runtime_modify")
	if edit {
		columns = append(columns, column{head: "Change"})
	}
	g := v.grid("values", "Runtime values", "cards", order{}, columns...)
	total, rows := 0, 0
	for key, x := range values.All() {
		if wanted != "" && !strings.Contains(strings.ToLower(key), strings.ToLower(wanted)) {
			continue
		}
		if total++; total <= offset || rows >= limit {
			continue
		}
		rows++
		g.row("")
		g.head(key, v.text(h("<code class='wrap'>"), key, h("</code>")))
		final := redact.Masked(key, x.Final)
		g.cell(final, func() {
			v.Put(h("<b class='wrap'>"), final, h("</b>"))
			v.left("runtime", key)
		})
		for _, value := range x.PerLayer {
			value = redact.Masked(key, value)
			g.cell(value, func() { v.orNone(value) })
		}
		if edit {
			g.cell("", v.text(h("<a class='btn' href='"), v.here("key", key), h("'>Change<span class='vh'> "), key, h("</span></a>")))
		}
	}
	g.end()
	v.pager(min(offset, total), rows, total, limit, "")
}
