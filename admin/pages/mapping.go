package pages

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/statsd-admin/statsd-admin/statsd/report"
)

// mapping appends the mapping rules with their use, unless the input has none.
func (v *view) mapping() {
	m := v.src.Ingest.Mapping()
	if len(m.Rules) == 0 && v.src.ReloadMapping == nil || !v.permits("/ingest/mapping") {
		return
	}
	show := v.choice("rules", "all", "unused", "shadowed")
	target := "/ingest/mapping?format=json"
	if show != "all" {
		target += "&show=" + show
	}
	v.panelBeside("mapping-head", "Mapping rules", func() {
		if len(m.Rules) > 0 {
			v.segments("Rules", "rules", "all", "All", "unused", "Unused", "shadowed", "Shadowed")
		}
	}, func() {
		if v.permits("/ingest/reload") {
			v.button("../ingest/reload", "Reload", "The rules are read again. If they have errors, the current ones stay.")
		}
		v.actions("mapping", target)
	}, func() {
		if m.Error != "" {
			v.Put(h("<div class='pad'>"))
			v.note("bad", "", v.text("The last reload failed, so the rules stayed: ", m.Error))
			v.Put(h("</div>\n"))
		}
		v.mappingSums(&m)
		rules := slices.DeleteFunc(slices.Clone(m.Rules), func(u report.RuleUse) bool {
			return show == "unused" && u.Matches > 0 || show == "shadowed" && u.ShadowedBy == 0
		})
		switch {
		case len(m.Rules) == 0:
			v.empty("There are no mapping rules.")
		case len(rules) == 0:
			v.empty("No rule is ", show, ".")
		default:
			v.mappingRules(rules)
		}
	})
}

// mappingSums appends what the rules did with samples.
func (v *view) mappingSums(m *report.Mapping) {
	v.Put(h("<dl class='pad strip' aria-label='Mapping'>"))
	fact := func(name string, value func()) {
		v.Put(h("<div><dt>"), name, h("</dt><dd>"))
		value()
		v.Put(h("</dd></div>"))
	}
	number := func(n uint64) func() { return v.exact(float64(n), count(n)) }
	fact("Samples mapped", number(m.Mapped))
	fact("Dropped by a rule", number(m.Dropped))
	if m.DropUnmatched {
		fact("Dropped without a rule", number(m.Unmatched))
	}
	fact("Reloads", number(m.Reloads))
	if m.FailedReloads > 0 {
		fact("Failed reloads", number(m.FailedReloads))
	}
	if !m.Reloaded.IsZero() {
		fact("Last reload", func() { v.when(m.Reloaded) })
	}
	v.Put(h("</dl>\n"))
}

func (v *view) mappingRules(rules []report.RuleUse) {
	offset, limit := v.window("100", "25", "1000")
	if offset >= len(rules) {
		offset = 0
	}
	shown := rules[offset:min(offset+limit, len(rules))]
	g := v.grid("mapping", "Mapping rules", "cards dense", order{}, column{head: "Rule", exported: true}, column{head: "Match", class: "name"}, column{head: "Position", exported: true},
		column{head: "Samples"}, column{head: "Metric"}, column{head: "Matches", class: "num"}, column{head: "Last match", class: "num"}, column{head: "State"})
	for i := range shown {
		u := &shown[i]
		class := ""
		if u.Matches == 0 {
			class = "unused"
		}
		g.row(class)
		g.cell(fmt.Sprint(u.Number), nil)
		g.head(u.Match, func() {
			v.Put(h("<i>"), u.Number, h("</i> "))
			v.dotted(u.Match)
			v.Put(h("<span class='sub'>"), u.Position)
			if u.Regex {
				v.Put(" regex")
			}
			v.Put(h("</span>"))
		})
		g.cell(u.Position, nil)
		samples := u.Kind
		samples = cmp.Or(samples, "all")
		g.cell(samples, nil)
		metric := u.Name
		if u.Drops {
			metric = ""
		}
		g.cell(metric, func() {
			if u.Drops {
				v.Put(h("<span class='quiet'>dropped</span>"))
				return
			}
			v.Put(h("<code class='wrap'>"))
			v.dotted(metric)
			v.Put(h("</code>"))
		})
		g.num(fmt.Sprint(u.Matches))
		g.cell(isoTime(u.Last), func() { v.when(u.Last) })
		switch {
		case u.ShadowedBy > 0:
			text := fmt.Sprintf("shadowed by rule %d", u.ShadowedBy)
			g.cell(text, func() { v.word("warn", text) })
		case u.Matches == 0:
			g.cell("unused", nil)
		default:
			g.cell("used", nil)
		}
	}
	g.end()
	v.pager(offset, len(shown), len(rules), limit, "")
}
