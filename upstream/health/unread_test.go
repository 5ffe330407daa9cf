package health

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// TestRestOfAnAnswerIsRefused: an answer longer than what a check reads ends with the
// check, though the connection is kept, and the next check is answered.
func TestRestOfAnAnswerIsRefused(t *testing.T) {
	ranges := []config.StatusRange{{Start: 200, End: 201}}
	for name, check := range map[string]config.HealthCheck{
		"http1": {HTTP: config.HTTPHealthCheck{Path: "/", Expected: ranges}},
		"http2": {HTTP: config.HTTPHealthCheck{Path: "/", Expected: ranges, HTTP2: true}},
		"grpc":  {Kind: config.GRPCCheck},
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan struct{}, 9)
			srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = w.Write(make([]byte, maxDrain+maxGRPCAnswer+1))
				w.(http.Flusher).Flush()
				<-r.Context().Done()
				ended <- struct{}{}
			}))
			startBoth(srv)
			defer srv.Close()
			check.ReuseConnection = true
			p := proberFor(t, Config{Check: check}, hostAt(srv.Listener.Addr().String()))
			defer p.Close()
			for range 3 {
				p.Probe(t.Context()) // which does not end with the check
				<-ended
			}
		})
	}
}
