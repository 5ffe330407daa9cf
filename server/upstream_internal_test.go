package server

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/clocktest"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/transport"
)

// unreachable is a control plane that cannot be reached.
type unreachable struct{ Control }

func (unreachable) Secrets() transport.Secrets { return nil }
func (unreachable) Attach(*upstream.Manager)   {}
func (unreachable) Check() error               { return errors.New("no way there") }

// TestUnreachableControlPlaneIsAnError expects a server not to start without the control
// plane that it is configured to follow.
func TestUnreachableControlPlaneIsAnError(t *testing.T) {
	_, err := New(Config{Clusters: Clusters{Control: func(*Server) (Control, error) { return unreachable{}, nil }}})
	if err == nil || !strings.Contains(err.Error(), "no way there") {
		t.Errorf("%v", err)
	}
}

// TestUnknownFieldsOfControlPlanes rejects them, ignores them, or counts them and logs
// the first.
func TestUnknownFieldsOfControlPlanes(t *testing.T) {
	for _, x := range []struct {
		line  CommandLine
		err   string
		count uint64
		logs  int
	}{{CommandLine{RejectUnknownDynamicFields: true}, "3 unknown fields", 0, 0}, {CommandLine{IgnoreUnknownDynamicFields: true}, "", 0, 0}, {CommandLine{}, "", 6, 1}} {
		s, log := made(t, Config{CommandLine: x.line})
		for range 2 {
			if err := s.NoteUnknownFields("x", 3); errorText(err) != x.err {
				t.Errorf("%+v: %v", x.line, err)
			}
		}
		if n := s.gauges.dynamicUnknown.Total(); n != x.count || strings.Count(log.String(), "a control plane sends unknown fields") != x.logs {
			t.Errorf("%d, %s", n, log)
		}
	}
}

// TestUnknownFieldsAreLoggedOnceAMinute, whatever the time of day.
func TestUnknownFieldsAreLoggedOnceAMinute(t *testing.T) {
	for _, by := range []time.Duration{0, time.Hour, -time.Hour} {
		s, log := made(t, Config{})
		begin := time.Now()
		for i, at := range []time.Time{begin, clocktest.Set(begin, by).Add(time.Minute - 1), clocktest.Set(begin, by).Add(time.Minute)} {
			if err := s.noteUnknownFields("x", 1, at); err != nil {
				t.Error(err)
			}
			if want, got := []int{1, 1, 2}[i], strings.Count(log.String(), "a control plane sends unknown fields"); got != want {
				t.Errorf("clock set by %v: %d lines after %v, want %d", by, got, at.Sub(begin), want)
			}
		}
	}
}

func TestDiscoveryNames(t *testing.T) {
	for want, c := range map[string]config.Cluster{"start": {}, "dns": {Type: config.StrictDNS}, "eds": {Type: config.EDSDiscovery}, "redis": {Type: config.CustomDiscovery, CustomType: &config.CustomType{Name: "redis"}}} {
		if got := discoveryName(&c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := discoveryName(&config.Cluster{Type: config.LogicalDNS}); got != "dns" {
		t.Errorf("%q", got)
	}
}
