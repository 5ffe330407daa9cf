package pages

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/numfmt"
	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

func showStat(v *view) error {
	name := v.query.Value("name")
	v.title = name
	found := false
	var r statRow
	var steps []tags.Step
	var created time.Time
	family, network, hidden := "", false, false
	var before past
	var over, other line
	var own []tags.Tag
	v.stats(func(list *store.View) {
		c, ok := list.Find(name)
		if !ok {
			return
		}
		found = true
		r = readStat(&c)
		r.past = v.spark(&c)
		if r.histogram != nil {
			before = v.past(&c)
		}
		over = v.line(&c)
		if c, ok := list.Find(v.query.Value("with")); ok && (c.Kind() == store.KindCounter || c.Kind() == store.KindGauge) {
			other = v.line(&c)
		}
		created = c.Created()
		own = c.AppendTags(nil)
		if list, given := c.TagSteps(); !given {
			steps = list
		} else {
			for _, t := range own {
				steps = append(steps, tags.Step{Tag: t})
			}
		}
		network, hidden = c.Network(), c.Hidden()
		if f := c.Family(); f != nil {
			family = f.String()
		}
	})
	if !found {
		v.noStat(name)
		return nil
	}
	v.Put(h("<p class='crumbs'><a href='stats'>Stats</a> / "))
	parts := strings.Split(name, ".")
	if len(parts) > 1 && len(parts) < 12 {
		for i := 1; i < len(parts); i++ {
			prefix := strings.Join(parts[:i], ".") + "."
			v.Put(h("<a href='"), url("stats", "filter", "^"+quoteMeta(prefix)), h("'>"), parts[i-1], h("</a>."))
		}
	}
	v.Put(parts[len(parts)-1], h("</p>\n"))
	v.stream("ids", fmt.Sprint(r.ref))
	if r.histogram == nil {
		v.panel("value", "Value", func() { v.request(url("/stats", "filter", "^"+quoteMeta(name)+"$")) }, func() {
			v.Put(h("<p class='pad'>"))
			if r.kind == store.KindText {
				v.Put(h("<span class='big wrap'>"), r.text, h("</span>"))
			} else {
				v.Put(h("<span class='big' data-stat='"), name, h("' data-value='"), r.value, h("'>"), numfmt.Grouped(r.value), h("</span>"))
				if r.kind == store.KindCounter {
					v.Put(h(" <span class='quiet'><span data-rate='"), name, h("' data-value='"), exactValue(r.past.latest), h("'>"), numfmt.Rate(r.past.latest), h("</span> per second</span>"))
				}
			}
			v.Put(h("</p>\n"))
		})
		if r.kind != store.KindText {
			v.scripts = append(v.scripts, "line.js")
			v.overtime(&over, &other)
		}
	} else {
		v.histogram(name, r.histogram, &before)
	}
	v.Put(h("<div class='cols'>\n"))
	v.panel("about", "About", func() { v.request(url("/stats/explain", "name", name)) }, func() {
		v.pairs(func(pair func(string, func())) {
			pair("Type", v.text(r.kind.String()))
			origin := "the program"
			if network {
				origin = "StatsD input"
			}
			pair("Created by", v.text(origin))
			used := "no"
			if r.used {
				used = "yes"
			}
			pair("Ever updated", v.text(used))
			if hidden {
				pair("Hidden", v.text("shown only with hidden=include"))
			}
			if family != "" && family != name {
				pair("Name without tags", v.text(h("<code class='wrap'>"), family, h("</code>")))
			}
			pair("Created", func() { v.when(created) })
			if v.src.History != nil && r.kind != store.KindText {
				pair("Last change", func() {
					if r.past.changed.IsZero() {
						v.Put("none in the last hour")
						return
					}
					v.when(r.past.changed)
				})
			}
			for _, s := range steps {
				pair("Tag "+s.Name, v.text(h("<code class='wrap'>"), s.Value, h("</code> <span class='quiet'>"), tagRule(s), h("</span>")))
			}
			if v.src.Sinks != nil {
				var names []string
				for _, x := range v.src.Sinks() {
					names = append(names, x.Name)
				}
				slices.Sort(names)
				pair("Sinks", v.text(cmp.Or(strings.Join(names, ", "), none)))
			}
			if network && v.src.Ingest != nil {
				for _, x := range v.src.Ingest.NearLimits(family, own) {
					pair("Limit "+limitName(x), func() { v.limitUse(x) })
				}
			}
		})
	})
	v.exposition(name)
	v.Put(h("</div>\n"))
	return nil
}

// tagRule describes the rule that made a tag.
func tagRule(s tags.Step) string {
	switch {
	case s.Regex != "":
		return "by the regex " + s.Regex
	case s.Tokens != "":
		return "by the tokens " + s.Tokens
	}
	return "given"
}

// noStat answers for a name that does not exist, with links to the name that was probably
// meant, and to prefixes.
func (v *view) noStat(name string) {
	v.status = 404
	v.title = "No such stat"
	v.note("bad", "", func() {
		v.Put("There is no stat ", h("<code class='wrap'>"), name, h("</code>."))
		if near := v.site.srv.NearestStat(name, false); near != "" {
			v.Put(h(" Did you mean <a class='wrap' href='"), url("stat", "name", near), h("'>"), near, h("</a>?"))
		}
	})
	const most = 20
	parts := strings.Split(name, ".")
	for i := len(parts) - 1; i >= max(len(parts)-most, 1); i-- {
		parent := strings.Join(parts[:i], ".")
		filter := "^" + quoteMeta(parent+".")
		total := 0
		err := v.site.srv.Filtered(filter, func(f *render.Filter) (err error) {
			v.stats(func(list *store.View) {
				w := render.NewWalk(list, render.Options{Filter: f})
				total, err = w.Rest(), w.Err()
			})
			return err
		})
		if err == nil && total > 0 {
			v.Put(h("<p><a href='"), url("stats", "filter", filter), h("'>"), plural(total, "stat"), " under ", parent, h("</a></p>\n"))
			return
		}
	}
	v.Put(h("<p><a href='stats'>All stats</a></p>\n"))
	v.nearest(name, "quiet")
}

// exposed is how many bytes of the exposition of a stat the page shows.
const exposed = 16 << 10

// exposition appends the lines of the stat as a scrape gets them.
func (v *view) exposition(name string) {
	var lines bytes.Buffer
	err := v.site.srv.Filtered("^"+quoteMeta(name)+"$", func(f *render.Filter) error {
		return render.Exposition(&lines, v.site.srv.Store(), render.Options{Filter: f, TextReadouts: true})
	})
	if err != nil || lines.Len() == 0 {
		return
	}
	text := lines.Bytes()
	shown := text[:min(len(text), exposed)]
	v.panel("exposition", "As a scrape sees it", func() { v.request(url("/stats/metrics", "filter", "^"+quoteMeta(name)+"$", "text_readouts", "1")) }, func() {
		v.Put(h("<pre class='pad scroll' tabindex='0'>"), string(shown), h("</pre>\n"))
		if len(shown) < len(text) {
			v.empty(fmt.Sprintf("Only the first %d KiB are shown.", exposed>>10))
		}
	})
}
