package main

import (
	"net/http"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/server"
)

// metricsPath is where the administration interface has metrics.
const metricsPath = "/metrics"

// serve adds the paths of statsd_exporter to the administration interface.
func (e *Exporter) serve(s *server.Server) error {
	const group = "StatsD"
	rows := []admin.Endpoint{
		{Path: "/-/healthy", Group: group, Help: "answer 200", Serve: says("statsd-admin is healthy.\n")},
		{Path: "/-/ready", Group: group, Help: "answer 200", Serve: says("statsd-admin is ready.\n")},
	}
	if e.Lifecycle {
		rows = append(rows,
			admin.Endpoint{Path: "/-/reload", Group: group, Help: "reload the mapping rules", Mutates: true, Put: true, Role: admin.RoleOperate, Serial: true, Serve: e.reload(s)},
			admin.Endpoint{Path: "/-/quit", Group: group, Help: "shut the server down", Mutates: true, Put: true, Destructive: true, Serve: func(w *admin.Response, r *admin.Request) error {
				r.After(s.Quit)
				return says("Requesting termination\n")(w, r)
			}})
	}
	if path := e.TelemetryPath; path != metricsPath {
		rows = append(rows, admin.Endpoint{Path: path, Group: group, Help: "show stats in the text exposition format", Serve: admin.HTTPHandler(telemetry(s.Admin()))})
	}
	for _, row := range rows {
		if err := s.Admin().Handle(row); err != nil {
			return err
		}
	}
	return nil
}

// reload returns the handler that reloads the mapping rules.
func (e *Exporter) reload(s *server.Server) admin.Handler {
	return func(w *admin.Response, r *admin.Request) error {
		if e.MappingConfig == "" {
			s.Logger("config").Warn("nothing to reload: --statsd.mapping-config is not set")
		} else if err := s.Admin().Sources().ReloadMapping(); err != nil {
			return &admin.Error{Status: 400, Msg: "the current mapping rules stay: " + err.Error() + "\n"}
		}
		return says("Requesting reload\n")(w, r)
	}
}

// telemetry answers any path as the interface answers metricsPath.
func telemetry(s *admin.Server) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = metricsPath
		r.Host = "localhost" // the name in the request has already been checked
		s.ServeHTTP(inner{w}, r)
	})
}

// inner is the writer of a response within another, which has these fields.
type inner struct{ http.ResponseWriter }

func (w inner) WriteHeader(status int) {
	w.Header().Del("x-content-type-options")
	w.Header().Del("cross-origin-resource-policy")
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap returns the outer writer to [http.ResponseController].
func (w inner) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// says returns a handler that answers with a text.
func says(text string) admin.Handler {
	return func(w *admin.Response, _ *admin.Request) error {
		w.SetType("text/plain; charset=UTF-8")
		_, err := w.WriteString(text)
		return err
	}
}
