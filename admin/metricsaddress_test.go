package admin

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/guard/guardtest"
	"github.com/statsd-admin/statsd-admin/store"
)

// TestMetricsAddress checks that the second address serves the endpoints of ModeMetricsOnly
// alone, that the first one serves all, and that both sockets move to another server.
func TestMetricsAddress(t *testing.T) {
	s, err := New(Config{Store: store.New(store.Options{}), Address: "127.0.0.1:0", MetricsAddress: "0.0.0.0:0"})
	if err != nil {
		t.Fatal(err)
	}
	if s.MetricsAddr() != nil {
		t.Error("a server that does not listen has an address")
	}
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	status := func(method, url string) (int, string) {
		t.Helper()
		req, err := http.NewRequest(method, "http://"+url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	check := func(s *Server) {
		t.Helper()
		_, port, _ := strings.Cut(s.MetricsAddr().String(), "]:") // of [::]:port
		metrics, all := "127.0.0.1:"+port, s.Addr().String()
		for _, tt := range []struct {
			method, path string
			metrics, all int
		}{
			{"GET", "/metrics", 200, 200},
			{"GET", "/stats", 200, 200},
			{"GET", "/ready", 200, 200},
			{"GET", "/help", 404, 200},
			{"GET", "/", 404, 200},
			{"GET", "/server_info", 404, 200},
			{"GET", s.assets.Path("admin.css"), 404, 200},
			{"POST", "/reset_counters", 404, 200},
		} {
			if got, body := status(tt.method, metrics+tt.path); got != tt.metrics || got == 404 && strings.Contains(body, "quitquitquit") {
				t.Errorf("metrics address: %s has status %d, want %d: %s", tt.path, got, tt.metrics, body)
			}
			if got, _ := status(tt.method, all+tt.path); got != tt.all {
				t.Errorf("address: %s has status %d, want %d", tt.path, got, tt.all)
			}
		}
		if s.metrics.exposed.Value() != 0 {
			t.Error("the metrics address counts as exposed")
		}
	}
	done := make(chan error, 1)
	go func() { done <- s.Run(t.Context()) }()
	check(s)
	s.Pause()
	s.Resume()
	check(s)
	next, err := New(Config{Store: store.New(store.Options{}), Address: s.Addr().String(), MetricsAddress: s.MetricsAddr().String()})
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Listen(); err == nil || next.MetricsAddr() != nil {
		t.Errorf("a taken address is bound: %v", err)
	}
	own, err := s.File()
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := s.MetricsFile()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	<-done
	next.Inherit(own)
	next.InheritMetrics(metrics)
	if err := next.Listen(); err != nil {
		t.Fatal(err)
	}
	go func() { done <- next.Run(t.Context()) }()
	check(next)
	if err := next.Close(); err != nil {
		t.Error(err)
	}
	<-done
	if _, err := next.MetricsFile(); err == nil {
		t.Error("a closed server has a socket")
	}
}

// TestMetricsAddressErrors checks the addresses that are refused, and that a taken one
// leaves the first address free.
func TestMetricsAddressErrors(t *testing.T) {
	for _, cfg := range []Config{
		{MetricsAddress: "127.0.0.1:0"},
		{Address: "127.0.0.1:0", MetricsAddress: "unix:/tmp/metrics"},
		{Address: "127.0.0.1:0", MetricsAddress: "9102"},
	} {
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), "metrics address") {
			t.Errorf("%q next to %q: %v", cfg.MetricsAddress, cfg.Address, err)
		}
	}
	taken := start(t, Config{Address: "127.0.0.1:0"})
	s, err := New(Config{Address: "127.0.0.1:0", MetricsAddress: taken.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Listen(); err == nil || strings.Contains(err.Error(), "already listening") || s.Addr() != nil {
			t.Fatalf("a taken address is bound next to %v: %v", s.Addr(), err)
		}
	}
}

// wildAddress is a listener that panics when it is served.
type wildAddress struct{ net.Listener }

func (wildAddress) Addr() net.Addr { panic(guardtest.Canary) }

// TestMetricsAddressPanics checks that the first address outlives the second one.
func TestMetricsAddressPanics(t *testing.T) {
	panics := guardtest.New(t)
	s := newServer(t, Config{Address: "127.0.0.1:0", MetricsAddress: "127.0.0.1:0", Logger: panics.Logger()})
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	s.metricsPort.gate.Listener = wildAddress{s.metricsPort.gate.Listener}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(t.Context()) }()
	panics.Caught("metrics address")
	if a := get(t, s, "/ready"); a.status != 200 {
		t.Errorf("/ready: %+v", a)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
}
