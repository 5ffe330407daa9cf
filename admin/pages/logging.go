package pages

import (
	"strings"

	"github.com/statsd-admin/statsd-admin/server/logctl"
)

func showLogging(v *view) error {
	if v.src.Loggers == nil {
		v.panel("none", "Loggers", nil, func() { v.empty("The program has set no loggers.") })
		return nil
	}
	list := v.src.Loggers.List()
	wanted := strings.ToLower(v.query.Value("filter"))
	v.summary = plural(len(list), "logger")
	edit := v.permits("/logging")
	v.panel("all", "All loggers", nil, func() {
		v.Put(h("<div class='pad row'>"))
		if edit {
			v.Put(h("<form class='row' method='post' action='../logging' data-effect='All loggers change their level.'><label>Level <select name='level'>"))
			for _, level := range logctl.Levels() {
				v.Put(h("<option>"), level, h("</option>"))
			}
			v.Put(h("</select></label>"))
			v.ttl("all loggers")
			v.dryRun()
			v.Put(h("<button type='submit'>Set all</button></form>"))
		}
		if v.src.ReopenLogs != nil && v.permits("/reopen_logs") {
			v.button("../reopen_logs", "Reopen log files", "All log files are closed and opened again, as after a rotation.")
		}
		v.Put(h("<form class='row end' method='get' action='logging'><label><span class='vh'>Filter by name</span><input type='search' name='filter' placeholder='Filter by name' value='"),
			v.query.Value("filter"), h("'></label><button type='submit'>Filter</button></form></div>\n"))
	})
	v.panel("loggers-head", "Levels", func() {
		v.Put(h("<a class='btn' data-copy='tsv' href='"), v.here("tsv", "loggers"), h("'>TSV</a>"))
		v.request("/logging", "-X POST")
	}, func() {
		g := v.grid("loggers", "Loggers and their levels", "cards levels", order{}, column{head: "Logger"}, column{head: "Level"})
		for _, l := range list {
			if wanted != "" && !strings.Contains(strings.ToLower(l.Name), wanted) {
				continue
			}
			g.row("")
			g.head(l.Name, v.text(h("<code class='wrap'>"), l.Name, h("</code>")))
			g.cell(l.Level.String(), func() { v.level(&l, edit) })
		}
		g.end()
	})
	return nil
}

// level appends the level of a logger, with a form if it can be changed.
func (v *view) level(l *logctl.LoggerLevel, edit bool) {
	current := l.Level.String()
	if !edit {
		v.Put(current)
		v.left("log levels", l.Name)
		return
	}
	v.Put(h("<form class='row' method='post' action='../logging' data-effect='The level takes effect at once.' data-submit='change'><label><span class='vh'>Level of "), l.Name,
		h("</span><select name='"), l.Name, h("'>"))
	for _, level := range logctl.Levels() {
		v.Put(h("<option"))
		if level == current {
			v.Put(h(" selected"))
		}
		v.Put(h(">"), level, h("</option>"))
	}
	v.Put(h("</select></label>"))
	v.ttl(l.Name)
	v.left("log levels", l.Name)
	v.Put(h("<button type='submit'>Set</button></form>"))
}
