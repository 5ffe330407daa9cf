package server_test

import (
	"flag"
	"log/slog"
	"os"
	"testing"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/statsd/mapping"
	"github.com/statsd-admin/statsd-admin/store"
)

// idleSink is a sink that does nothing.
type idleSink struct{}

func (idleSink) Name() string                { return "idle" }
func (idleSink) Flush(*store.Snapshot) error { return nil }

// TestDocs keeps docs/endpoints.md equal to the endpoint table of a server with all
// endpoints.
func TestDocs(t *testing.T) {
	const path = "../docs/endpoints.md"
	cfg := server.Config{Admin: anyPort(), CircuitStream: &server.CircuitStream{}, StatsD: statsdOn("udp://127.0.0.1:0"), Loggers: quiet(t)}
	cfg.Admin.DebugEndpoints = true
	cfg.StatsDRules = &server.RulesSource{Load: func() (*mapping.Rules, []string, error) { return new(mapping.Rules), nil, nil }}
	cfg = withTap(cfg)
	cfg.Sinks = []server.NewSink{func(*store.Store, *slog.Logger, server.ClusterDialer) (flush.Sink, error) { return idleSink{}, nil }}
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	got := s.Admin().Markdown()
	compareDoc(t, path, got)
}

// compareDoc compares a page with its generated text, or writes it with -update.
func compareDoc(t *testing.T, path string, got []byte) {
	t.Helper()
	if f := flag.Lookup("update"); f != nil && f.Value.String() == "true" {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s is not the generated text; run this test with -update", path)
	}
}
