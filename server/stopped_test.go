package server_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/server"
	"github.com/statsd-admin/statsd-admin/server/logctl"
)

// TestLogOfTheEnd checks the last line of the log of a server without a port, and that
// its configuration dump is empty.
func TestLogOfTheEnd(t *testing.T) {
	var log bytes.Buffer
	loggers, err := logctl.New(logctl.Config{Output: &log})
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Config{Loggers: loggers})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(s.Admin().Request("GET", "/config_dump", nil).Body); got != "{}\n" {
		t.Errorf("dump without Envoy's messages: %q", got)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	<-s.Initialized()
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := log.String(); !strings.HasSuffix(got, "stopped\n") {
		t.Errorf("the log does not end with %q:\n%s", "stopped", got)
	}
}
