package admin

import (
	"fmt"
	"strings"
)

// Markdown returns the list of endpoints for the documentation.
func (s *Server) Markdown() []byte {
	out := []byte("# Endpoints\n\n" +
		"This list is made from the table that the server works with (`go test ./server -run TestDocs -update`),\n" +
		"with all that settings can add: `/circuit_event_stream` is there if a stats sink of that kind is configured, and\n" +
		"`/debug/pprof` with `admin.debug_endpoints`.\n\n" +
		"Mutations are sent with POST; GET and HEAD are answered with 400 and have no effect, other methods with 405.\n" +
		"All other endpoints answer any method like GET. Parameters stand in the query, or in a form\n" +
		"(`application/x-www-form-urlencoded`) if there is no query. An empty value is as good as none, except where\n" +
		"parameters are data; flags count by their name alone, whatever their value. The role counts where callers\n" +
		"have roles (see security.md).\n\n" +
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
