package server_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/server/logctl"
	"github.com/statsd-admin/statsd-admin/statsd/mapping"
)

// TestReloadErrorsAreLoggedOnOneLine reloads rules with two errors.
func TestReloadErrorsAreLoggedOnOneLine(t *testing.T) {
	var log bytes.Buffer
	loggers, err := logctl.New(logctl.Config{Output: &log})
	if err != nil {
		t.Fatal(err)
	}
	var fails error
	s, err := server.New(server.Config{
		Loggers: loggers, StatsD: statsdOn("udp://127.0.0.1:0"),
		StatsDRules: &server.RulesSource{Load: func() (*mapping.Rules, []string, error) {
			return new(mapping.Rules), nil, fails
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	fails = errors.New("2 errors in the rules:\n  rules.yaml:1: one\n  rules.yaml:2: two")
	s.Reload()
	if got, want := log.String(), `error="2 errors in the rules: rules.yaml:1: one; rules.yaml:2: two"`; !strings.Contains(got, want) {
		t.Errorf("the log has no %s:\n%s", want, got)
	}
}
