package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/server/certs"
	"github.com/statsd-admin/statsd-admin/server/listeners"
	"github.com/statsd-admin/statsd-admin/server/logctl"
	"github.com/statsd-admin/statsd-admin/statsd"
	"github.com/statsd-admin/statsd-admin/statsd/mapping"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream"
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

// TestErrorsOfAllPartsAreReturned expects the error of each part that failed.
func TestErrorsOfAllPartsAreReturned(t *testing.T) {
	g := &group{ctx: t.Context()}
	g.start()
	for _, name := range []string{"a", "b"} {
		g.serve(name, func() {}, func(context.Context) error { return errors.New("broken") })
	}
	if got := errorText(g.wait()); got != "a: broken\nb: broken" {
		t.Errorf("%q", got)
	}
}

type reopened struct{ err error }

func (r *reopened) Reopen() error { return r.err }

// TestFailedParts expects the errors of parts that a program gives to a server.
func TestFailedParts(t *testing.T) {
	failed := errors.New("failed")
	for what, cfg := range map[string]Config{
		"sink":     {Sinks: []NewSink{func(*store.Store, *slog.Logger, ClusterDialer) (flush.Sink, error) { return nil, failed }}},
		"no-sink":  {Sinks: []NewSink{nil}},
		"endpoint": {Endpoints: []admin.Endpoint{{Path: "/stats"}}},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("a %s that fails", what)
		}
	}
	for want, cfg := range map[string]Config{
		"server: base id file: ":                    {CommandLine: CommandLine{BaseIDPath: filepath.Join(t.TempDir(), "none", "id")}},
		`healthlistener: address "none" is neither`: {HealthListeners: []HealthListener{{Address: "none"}}},
		`server: listener "second": `:               {Listeners: []Listener{{Name: "first"}, {Name: "second", TLS: &certs.Files{Chain: "none", Key: "none"}}}},
	} {
		cfg.Loggers, _ = logctl.New(logctl.Config{Output: io.Discard})
		s, err := New(cfg)
		if err == nil {
			err = s.Listen()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
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

// TestRepeatedNames expects a health listener with the name of another one to work, though
// it cannot be listed, and a listener of the program to be refused.
func TestRepeatedNames(t *testing.T) {
	two := []HealthListener{{Address: "127.0.0.1:0"}, {Address: "127.0.0.1:0"}}
	s, log := made(t, Config{HealthListeners: two})
	defer s.stopHealth()
	if err := s.Listen(); err != nil || strings.Count(log.String(), "listener cannot be listed") != 1 || len(s.listeners.List()) != 1 {
		t.Errorf("two health listeners: %v, %s", err, log)
	}
	s.health[0].Stop()
	left := s.healthSockets()
	for _, so := range left {
		_ = so.Files[0].Close()
	}
	if len(left) != 1 {
		t.Errorf("%d sockets of one listener that is left", len(left))
	}
	s, _ = made(t, Config{
		StatsD:    &statsd.Config{Listeners: []statsd.ListenerConfig{{Name: "a", Address: "udp://127.0.0.1:0"}}},
		Listeners: []Listener{{Name: "a", Address: "127.0.0.1:0", HTTP: http.NotFoundHandler()}},
	})
	if err := s.Listen(); err == nil || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("a listener of the input and one of the program: %v", err)
	}
}

// TestWarningsOfRules expects the warnings about mapping rules in the log.
func TestWarningsOfRules(t *testing.T) {
	_, log := made(t, Config{StatsD: &statsd.Config{}, StatsDRules: &RulesSource{Load: func() (*mapping.Rules, []string, error) {
		rules, err := mapping.New(mapping.Config{})
		return rules, []string{"first warning", "second warning"}, err
	}}})
	for _, want := range []string{"first warning", "second warning"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %q in %s", want, log)
		}
	}
}

// TestOptionsOfOtherClusters expects clusters whose source lists no deprecated options to
// have none.
func TestOptionsOfOtherClusters(t *testing.T) {
	s, log := made(t, Config{})
	log.Reset()
	s.obsolete.note(struct{ upstream.Parsed }{})
	if n := s.obsolete.uses.Total(); n != 0 || log.Len() != 0 {
		t.Errorf("%d uses, %s", n, log)
	}
}

// TestWorkers expects the configured number of workers, or that of the processors.
func TestWorkers(t *testing.T) {
	for configured, want := range map[uint32]int{0: runtime.GOMAXPROCS(0), 1: 1, 3: 3} {
		s, _ := made(t, Config{CommandLine: CommandLine{Concurrency: configured}})
		if got := s.gauges.concurrency.Value(); got != uint64(want) {
			t.Errorf("%d workers configured: %d, want %d", configured, got, want)
		}
	}
}

// TestHealthListenerOfATakenName works, and the log tells that it cannot be listed.
func TestHealthListenerOfATakenName(t *testing.T) {
	for taken, want := range map[string]int{"other": 0, "health": 1} {
		s, log := made(t, Config{HealthListeners: []HealthListener{{Address: "127.0.0.1:0"}}})
		defer s.stopHealth()
		if err := s.listeners.Add(listeners.Listener{Name: taken}); err != nil {
			t.Fatal(err)
		}
		if err := s.listenHealth(); err != nil || strings.Count(log.String(), "listener cannot be listed") != want {
			t.Errorf("beside %s: %v, log %s", taken, err, log)
		}
	}
}
