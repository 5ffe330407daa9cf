package admin

import (
	"fmt"
	"strings"
)

// Markdown returns the list of endpoints for the documentation.
func (s *Server) Markdown() []byte {
	out := []byte("# Endpoints\n\n" +
		"The endpoints of the administration interface, generated from the table that dispatches requests\n" +
		"(`go test ./server -run TestDocs -update`). Some endpoints need a setting: `/circuit_event_stream` a stats sink of that\n" +
		"kind, those below `/debug/pprof` the key `admin.debug_endpoints`, `/tap` the key `admin.tap`, `/ingest` and the paths below\n" +
		"it the section `statsd`, `/ingest/reload` also mapping rules, and `/sinks` a sink. Without the setting they answer 404 and\n" +
		"name it.\n\n" +
		"Requests that change the server must use POST: GET and HEAD are answered with 400, other methods with 405, and\n" +
		"nothing changes. All other endpoints treat every method as GET. `CONNECT`, `TRACE` and unknown methods are answered with\n" +
		"400 everywhere.\n\n" +
		"Parameters are read from the query, or from a form (`application/x-www-form-urlencoded`) if there is no query. An\n" +
		"empty value counts as absent, except for parameters that contain data. A flag is set by its name, whatever its\n" +
		"value. A change with an unknown parameter is answered with 400; the response to a read names unknown parameters in the\n" +
		"header `x-unknown-parameters`. Roles apply to clients that authenticate; see [security.md](security.md).\n\n" +
		"| Path | Method | Role | Parameters | What it does |\n|---|---|---|---|---|\n")
	for _, e := range s.Endpoints() {
		method := "GET"
		if e.Mutates {
			method = "POST"
		}
		var params []string
		for _, p := range e.Params {
			text := "`" + p.Name + "`"
			switch p.Kind {
			case ParamText, ParamLines:
				text += "=…"
			case ParamChoice:
				text += "=" + strings.Join(nonEmpty(p.Choices), "\\|")
			}
			params = append(params, text)
		}
		paths := "`" + e.Path + "`"
		for _, alias := range e.Aliases {
			paths += ", `" + alias + "`"
		}
		out = fmt.Appendf(out, "| %s | %s | %s | %s | %s |\n", paths, method, e.needs(), strings.Join(params, "<br>"), e.Help)
	}
	return out
}

func nonEmpty(list []string) []string {
	var out []string
	for _, s := range list {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}
