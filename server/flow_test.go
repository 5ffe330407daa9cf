package server_test

import (
	"bytes"
	"context"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/flush/graphite"
	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/render/naming"
	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/server/logctl"
	"github.com/statsd-admin/statsd-admin/store"
)

// TestStartLogsTheFlow checks that the log of a start says how received stats are treated
// and where stats go.
func TestStartLogsTheFlow(t *testing.T) {
	rules := filepath.Join(t.TempDir(), "m.yaml")
	writeFile(t, rules, []byte("mappings: [{match: a.*, name: a}, {match: b, name: b}]\nx-statsd-admin: {unmatched: drop}\n"))
	for _, tt := range []struct {
		seconds bool
		unit    string
	}{{false, "ms"}, {true, "s"}} {
		var out bytes.Buffer
		loggers, err := logctl.New(logctl.Config{Level: logctl.Info, Output: &out})
		if err != nil {
			t.Fatal(err)
		}
		st := store.New(store.Options{Naming: naming.Rules{NetworkSeconds: tt.seconds}})
		sink, err := graphite.New(graphite.Config{Options: sinkqueue.Options{Store: st, Name: "g"}, Address: "127.0.0.1:1"})
		if err != nil {
			t.Fatal(err)
		}
		m := bootstrap.StatsDMapping{File: rules}
		s, err := server.New(server.Config{
			CommandLine: server.CommandLine{Mode: "InitOnly"}, Store: st, Loggers: loggers, Admin: anyPort(), StatsD: statsdOn("udp://127.0.0.1:0"),
			StatsDRules: &server.RulesSource{File: rules, Load: m.Load},
			Flush:       flush.Config{Interval: time.Minute, Sinks: []flush.Sink{sink}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Listen(); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"statsd input is configured mapping_rules=2 file=" + rules + " unmatched=drop timer_unit=" + tt.unit + "\n",
			"stats are sent to a sink name=g kind=graphite target=tcp://127.0.0.1:1 interval=1m0s\n",
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("the log lacks %q:\n%s", want, out.String())
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // Run closes what Listen bound
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
	}
}

// TestStartLogsListenersOnce checks that the log of a start has the address of a listener once,
// and its name if that is another text.
func TestStartLogsListenersOnce(t *testing.T) {
	cfg := fromText(t, `
statsd: {listeners: [{address: "udp://127.0.0.1:0"}, {address: "tcp://127.0.0.1:0", name: edge}]}
health_listeners: [{address: {socket_address: {address: 127.0.0.1, port_value: 0}}}]
`)
	var out bytes.Buffer
	loggers, err := logctl.New(logctl.Config{Level: logctl.Info, Format: "%v", Output: &out})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Loggers, cfg.Admin, cfg.CommandLine.Mode = loggers, anyPort(), "InitOnly"
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	log := regexp.MustCompile(`127\.0\.0\.1:[0-9]+`).ReplaceAllString(out.String(), "ADDRESS")
	for _, want := range []string{"statsd listener udp://ADDRESS\n", "statsd listener edge on tcp://ADDRESS\n", "health listener health on ADDRESS\n"} {
		if !strings.Contains("\n"+log, "\n"+want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // Run closes what Listen bound
	if err := s.Run(ctx); err != nil {
		t.Error(err)
	}
}

// TestTokensAreReloadedOnlyIfTheyChanged checks that the first look at a file of tokens is
// not logged as a reload.
func TestTokensAreReloadedOnlyIfTheyChanged(t *testing.T) {
	const digest = ":0000000000000000000000000000000000000000000000000000000000000000:n\n"
	tokens := filepath.Join(t.TempDir(), "tokens")
	writeFile(t, tokens, []byte("metrics"+digest))
	var out bytes.Buffer
	loggers, err := logctl.New(logctl.Config{Level: logctl.Info, Output: &out})
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Config{Loggers: loggers, Admin: anyPort(), AdminTokens: tokens})
	if err != nil {
		t.Fatal(err)
	}
	s.Reload()
	if strings.Contains(out.String(), "reloaded") {
		t.Errorf("unchanged tokens are logged as reloaded:\n%s", out.String())
	}
	writeFile(t, tokens, []byte("read"+digest))
	s.Reload()
	s.Reload()
	if strings.Count(out.String(), "tokens reloaded file="+tokens) != 1 {
		t.Errorf("changed tokens are not logged once:\n%s", out.String())
	}
}
