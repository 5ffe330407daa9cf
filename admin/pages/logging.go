package pages

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/server/logctl"
)

func showLogging(v *view) error {
	if v.src.Loggers == nil {
		return v.nothing("Loggers", "The program has set no loggers.")
	}
	list := v.src.Loggers.List()
	wanted := strings.ToLower(v.query.Value("filter"))
	v.summary = plural(len(list), "logger")
	edit := v.permits("/logging")
	most := mostFrequent(list)
	v.panel("all", "All loggers", nil, func() {
		v.Put(h("<div class='pad row'>"))
		if edit {
			v.Put(h("<form class='row' method='post' action='../logging' data-effect='All loggers change their level.'><label>Level <select name='level'>"))
			v.levels(most)
			v.Put(h("</select></label>"))
			v.ttl("all loggers")
			v.dryRun()
			v.Put(h("<button type='submit'>Set all</button></form>"))
		}
		if v.src.ReopenLogs != nil && v.permits("/reopen_logs") {
			v.button("../reopen_logs", "Reopen log files", "All log files are closed and opened again, as after a rotation.")
		}
		v.Put(h("</div>\n"))
	})
	v.Put(h("<form class='panel pad row' method='get' action='logging' data-live='results'><label class='grow'><span class='vh'>Filter by name</span><input type='search' name='filter' class='find' placeholder='Filter by name' value='"),
		v.query.Value("filter"), h("'></label>"))
	if edit {
		v.Put(h("<label>Set levels "))
		v.lifetimes()
		v.Put(h("</label>"))
	}
	v.Put(h("<button type='submit' class='unscripted'>Show</button></form>\n<div id='results'>\n"))
	defer v.Put(h("</div>\n"))
	slices.SortStableFunc(list, func(a, b logctl.LoggerLevel) int {
		return cmp.Or(strings.Compare(path.Dir(a.Name), path.Dir(b.Name)), strings.Compare(a.Name, b.Name))
	})
	list = slices.DeleteFunc(list, func(l logctl.LoggerLevel) bool { return !strings.Contains(strings.ToLower(l.Name), wanted) })
	if edit {
		v.restore()
	}
	v.panel("loggers-head", "Levels", func() {
		v.Put(h("<a class='btn' data-copy='tsv' href='"), v.here("tsv", "loggers"), h("'>TSV</a>"))
		v.request("/logging", "-X POST")
	}, func() {
		if len(list) == 0 {
			v.unmatched("logger")
			return
		}
		if edit {
			v.several(list, most)
		}
		v.loggers(list, edit)
	})
	return nil
}

// mostFrequent returns the level that most loggers have. Forms for several loggers begin
// with it, so that a click by mistake changes little.
func mostFrequent(list []logctl.LoggerLevel) (level string) {
	n := map[string]int{}
	for _, l := range list {
		of := l.Level.String()
		n[of]++
		if n[of] > n[level] {
			level = of
		}
	}
	return level
}

// loggers appends the table of loggers. Source files are grouped by their directory.
func (v *view) loggers(list []logctl.LoggerLevel, edit bool) {
	picked := v.picked()
	g := v.grid("loggers", "Loggers and their levels", "cards levels", order{}, column{head: "Logger"}, column{head: "Level"})
	above := ""
	for i := range list {
		l := &list[i]
		dir, file := path.Split(l.Name)
		if dir != above {
			g.wide("group", v.text(h("<code class='wrap'>"), dir, h("</code>")))
			above = dir
		}
		g.row("")
		g.head(l.Name, func() {
			if edit {
				v.Put(h("<label class='check'><input type='checkbox' form='several' name='pick' value='"), l.Name, h("'"))
				if slices.Contains(picked, l.Name) {
					v.Put(h(" checked"))
				}
				v.Put(h("><span class='vh'>pick</span>"))
			}
			v.Put(h("<code class='wrap'>"), file, h("</code>"))
			if edit {
				v.Put(h("</label>"))
			}
		})
		g.cell(l.Level.String(), func() { v.level(l, edit) })
	}
	g.end()
}

// several appends the form that picks loggers, and for picked ones the form that sets
// their levels in one request.
func (v *view) several(list []logctl.LoggerLevel, most string) {
	var paths []string
	to := v.choice("to", append([]string{most}, logctl.Levels()...)...)
	for _, name := range v.picked() {
		if slices.ContainsFunc(list, func(l logctl.LoggerLevel) bool { return l.Name == name }) && !strings.ContainsAny(name, ",:=") {
			paths = append(paths, name+":"+to)
		}
	}
	v.Put(h("<form class='pad row' id='several' method='get' action='logging'>"))
	v.keep("filter", "ttl")
	v.Put(h("<label>Set picked loggers to <select name='to'>"))
	v.levels(to)
	v.Put(h("</select></label><button type='submit'>Continue</button></form>\n"))
	if len(paths) == 0 {
		return
	}
	v.Put(h("<form class='pad row line' method='post' action='../logging' data-effect='The picked loggers change their level in one step.'><input type='hidden' name='paths' value='"),
		strings.Join(paths, ","), h("'><code class='wrap'>"), strings.Join(paths, ", "), h("</code>"))
	v.ttl("picked loggers")
	v.dryRun()
	v.Put(h("<button type='submit' class='primary'>Set "), plural(len(paths), "logger"), h("</button><a class='btn' href='"), v.here("pick", "", "to", ""), h("'>Cancel</a></form>\n"))
}

// restore appends the latest changes of levels that can be undone.
func (v *view) restore() {
	const most = 10
	var changed []admin.AuditEntry
	for _, e := range v.site.srv.Audit(1000) {
		if e.Path == "/logging" && e.Undoable() && len(changed) < most {
			changed = append(changed, e)
		}
	}
	if len(changed) == 0 || !v.permits("/audit/undo") {
		return
	}
	v.panel("restore", "Changed since the start", nil, func() {
		v.Put(h("<ul class='list'>"))
		for i := range changed {
			v.Put(h("<li><span class='grow'>"))
			v.changes(&changed[i])
			v.Put(h("</span>"))
			v.undo(&changed[i], "Restore")
			v.Put(h("</li>\n"))
		}
		v.Put(h("</ul>\n"))
	})
}

func (v *view) picked() (names []string) {
	for _, p := range v.query {
		if p.Name == "pick" {
			names = append(names, p.Value)
		}
	}
	return names
}

// levels appends the options of a field for a level.
func (v *view) levels(current string) {
	for _, level := range logctl.Levels() {
		v.option(level, level, level == current)
	}
}

// level appends the level of a logger, with a form if it can be changed.
func (v *view) level(l *logctl.LoggerLevel, edit bool) {
	current := l.Level.String()
	if !edit {
		v.Put(current)
		v.left("log levels", l.Name)
		return
	}
	ttl, applies := v.lifetime()
	v.Put(h("<form class='row' method='post' action='../logging' data-effect='The level takes effect at once and applies "), applies, h(".' data-submit='change'><label><span class='vh'>Level of "), l.Name,
		h("</span><select name='"), l.Name, h("'>"))
	v.levels(current)
	v.Put(h("</select></label>"))
	if ttl != "" {
		v.Put(h("<input type='hidden' name='ttl' value='"), ttl, h("'>"))
	}
	v.left("log levels", l.Name)
	v.Put(h("<button type='submit'>Set</button></form>"))
}
