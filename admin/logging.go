package admin

import (
	"strings"

	"github.com/statsd-admin/statsd-admin/server/logctl"
)

const loggingUsage = `usage: /logging?<name>=<level> (change single level)
usage: /logging?paths=name1:level1,name2:level2,... (change multiple levels)
usage: /logging?level=<level> (change all levels)
levels: `

// logging changes log levels and lists the loggers.
func (s *Server) logging(w *Response, r *Request) error {
	loggers := s.src.Loggers
	if loggers == nil {
		return missing("this server's log levels cannot be changed: the program has set no loggers")
	}
	before := loggers.List()
	if r.DryRun() {
		loggers = loggers.Clone()
	}
	var out []byte
	if reason := changeLevels(loggers, r.query); reason != "" {
		w.SetStatus(400)
		out = append(out, "error: "+reason+"\n\n"+loggingUsage...)
		for _, level := range logctl.Levels() {
			out = append(append(out, level...), ' ')
		}
		out = append(out, '\n')
	}
	after := loggers.List()
	s.noteLevels(r, before, after)
	r.Sets(levelsSet(loggers, r.query)...)
	out = append(out, "active loggers:\n"...)
	for _, l := range after {
		out = append(out, "  "+l.Name+": "+l.Level.String()+"\n"...)
	}
	return w.all(typeText, append(out, '\n'))
}

// changeLevels applies the parameters and returns an error text, or "" on success.
// Without parameters nothing changes.
func changeLevels(loggers Loggers, q Query) string {
	var left []Pair
	for _, p := range q.Distinct() {
		if p.Value != "" || p.Name != "level" && p.Name != "paths" {
			left = append(left, p)
		}
	}
	if len(left) == 0 {
		return ""
	}
	if len(left) > 1 {
		return "invalid number of parameters"
	}
	var err error
	switch p := left[0]; p.Name {
	case "level":
		err = loggers.SetAll(p.Value)
	case "paths":
		err = loggers.SetPaths(p.Value)
	default:
		err = loggers.Set(p.Name, p.Value)
	}
	if err != nil {
		return strings.ReplaceAll(err.Error(), "\n", " ")
	}
	return ""
}

// levelsSet returns the names of the settings that the parameters set, be it to the
// present value: settings that end up the same, however the levels were before.
func levelsSet(loggers Loggers, q Query) (names []string) {
	var after [2]map[string]string
	for i, level := range [...]string{"trace", "off"} {
		from := loggers.Clone()
		_, _ = from.SetAll(level), from.SetPaths("*:"+level) // the rule is for source files
		changeLevels(from, q)
		after[i] = from.Settings()
	}
	for name, level := range after[0] {
		if after[1][name] == level {
			names = append(names, name)
		}
	}
	return names
}

// noteLevels records and logs the changed levels.
func (s *Server) noteLevels(r *Request, before, after []logctl.LoggerLevel) {
	old := make(map[string]logctl.Level, len(before))
	for _, l := range before {
		old[l.Name] = l.Level
	}
	for _, l := range after {
		if was, ok := old[l.Name]; ok && was != l.Level {
			r.Changed(l.Name, was.String(), l.Level.String())
			if r.dryRun {
				continue
			}
			s.logger.Info("change log level: name='" + l.Name + "' level='" + l.Level.String() + "'")
		}
	}
}
