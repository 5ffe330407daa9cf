package admin

import (
	"net/url"
	"slices"
	"strings"

	"github.com/statsd-admin/statsd-admin/internal/spelling"
)

// absent returns the answer for a path that only servers with a certain setting have, ""
// for others.
func (s *Server) absent(path string) string {
	switch path {
	case "/sinks", "/ui/sinks":
		return "no sinks are configured; an entry in sinks or stats_sinks adds one\n"
	case "/ingest/reload":
		return "no mapping rules are configured; statsd.mapping adds some\n"
	case "/ingest", "/ingest/events", "/ingest/explain", "/ingest/forget", "/ingest/mapping", "/ui/ingest":
		return "there is no StatsD input; the section statsd adds it\n"
	case "/tap":
		return "the tap is off; admin.tap: {} turns it on\n"
	}
	if strings.HasPrefix(path, "/debug/pprof/") && !s.cfg.DebugEndpoints {
		return "the debug endpoints are off; admin.debug_endpoints: true turns them on\n"
	}
	return ""
}

// readsForm reports whether e reads body as a form if its content type says so.
func (e *Endpoint) readsForm(body string) bool {
	name, _, _ := strings.Cut(body, "=")
	return !e.TakesBody || slices.ContainsFunc(e.Params, func(p Param) bool { return p.Name == name })
}

// unknownParams returns the distinct parameters that e does not have.
func (e *Endpoint) unknownParams(q Query) []string {
	if e.OpenParams || !e.Fixed && len(e.Params) == 0 {
		return nil
	}
	return slices.DeleteFunc(q.Keys(), func(name string) bool {
		return name == "" || slices.Contains(e.also, name) || slices.ContainsFunc(e.Params, func(p Param) bool { return p.Name == name })
	})
}

// nearestParam returns the parameter of e that is spelled most like name, "" if
// none is close.
func (e *Endpoint) nearestParam(name string) string {
	return spelling.Nearest(strings.ToLower(name), func(yield func(string) bool) {
		for _, p := range e.Params {
			if !yield(p.Name) {
				return
			}
		}
	}, len(name)/2)
}

// Limits for naming unknown parameters in responses.
const (
	unknownShown = 8
	unknownBytes = 64
)

// refuseUnknown answers a mutation with parameters that it does not have.
func (e *Endpoint) refuseUnknown(name string) error {
	name = name[:min(len(name), unknownBytes)]
	text := "unknown parameter " + quoted(name)
	if near := e.nearestParam(name); near != "" {
		text += ", did you mean " + near + "?"
	} else if len(e.Params) == 0 {
		text += ": this path has no parameters"
	} else {
		names := make([]string, len(e.Params))
		for i, p := range e.Params {
			names[i] = p.Name
		}
		text += ": this path has " + strings.Join(names, ", ")
	}
	return badRequest(text + "\n")
}

// unknownField is the value of the header field that names unknown parameters.
func unknownField(names []string) string {
	var out []string
	for _, name := range names[:min(len(names), unknownShown)] {
		out = append(out, url.QueryEscape(name[:min(len(name), unknownBytes)]))
	}
	return strings.Join(out, ", ")
}
