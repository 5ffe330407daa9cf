package server_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/server/logctl"
)

// lines collects log lines.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}

// TestChangesOfLevelsAreLoggedOnce checks that a level change is logged once, and an
// unchanged level is not.
func TestChangesOfLevelsAreLoggedOnce(t *testing.T) {
	var out lines
	loggers, err := logctl.New(logctl.Config{Level: logctl.Info, Output: &out})
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, server.Config{Admin: anyPort(), Loggers: loggers})
	for _, path := range []string{"/logging?main=debug", "/logging?paths=main:debug,stats:debug", "/logging?level=debug", "/logging?level=debug"} {
		if r := s.post(t, path); r.Status != 200 {
			t.Errorf("%s: %d %s", path, r.Status, r.Body)
		}
	}
	for _, l := range loggers.List() {
		if got := out.count("change log level: name='" + l.Name + "' level='debug'"); got != 1 {
			t.Errorf("the change of %s has %d lines", l.Name, got)
		}
	}
}
