package server

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/server/logctl"
	"github.com/statsd-admin/statsd-admin/store"
)

// made returns a server that does not run, and its log.
func made(t *testing.T, cfg Config) (*Server, *strings.Builder) {
	t.Helper()
	log := new(strings.Builder)
	loggers, err := logctl.New(logctl.Config{Level: logctl.Info, Output: log})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Loggers = loggers
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.hot.close(); s.closePorts(); _ = s.release() })
	return s, log
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

type reopened struct{ err error }

func (r *reopened) Reopen() error { return r.err }

// TestFailedParts expects the errors of parts that a program gives to a server.
func TestFailedParts(t *testing.T) {
	failed := errors.New("failed")
	for what, cfg := range map[string]Config{
		"sink":     {Sinks: []NewSink{func(*store.Store, *slog.Logger, ClusterDialer) (flush.Sink, error) { return nil, failed }}},
		"endpoint": {Endpoints: []admin.Endpoint{{Path: "/stats"}}},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("a %s that fails", what)
		}
	}
	s, log := made(t, Config{LogFile: &reopened{failed}})
	s.Store().Root().Counter("twice")
	if s.Store().Root().Gauge("twice"); !strings.Contains(log.String(), "twice") {
		t.Error("the log does not say that a name is used for two kinds")
	}
	if err := s.ReopenLogs(); !errors.Is(err, failed) {
		t.Errorf("the log cannot be reopened: %v", err)
	}
}
