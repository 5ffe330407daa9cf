package server_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statsd-admin/statsd-admin/server"
)

// TestRunsInABubble: the test of a program can run a server in a bubble of
// testing/synctest, where time passes at once. A goroutine that waits for the system
// would stop the clock there.
func TestRunsInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, err := server.New(server.Config{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- srv.Run(ctx) }()
		<-srv.Initialized()
		ask := func(target string) string { return string(srv.Admin().Request("POST", target, nil).Body) }
		ask("/runtime_modify?limits.sessions=7&ttl=1m")
		if got := ask("/runtime"); !strings.Contains(got, "limits.sessions") {
			t.Errorf("the runtime value is not set: %s", got)
		}
		before := srv.Flusher().Ended()
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := ask("/runtime"); strings.Contains(got, "limits.sessions") {
			t.Errorf("the runtime value has not ended: %s", got)
		}
		if n := srv.Flusher().Ended() - before; n < 11 || n > 13 {
			t.Errorf("%d flushes in a minute", n)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
