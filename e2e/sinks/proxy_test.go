package sinks

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
)

// gate is an HTTP proxy in front of a receiver, whose port outlives the receiver.
type gate struct {
	url    string
	target atomic.Pointer[httputil.ReverseProxy]
	fault  atomic.Pointer[fault] // nil: all requests are passed on
	failed atomic.Int64          // requests with a fault
}

// fault is what happens to requests.
type fault struct {
	name    string
	deliver bool   // the receiver gets the request
	answer  int    // the status for the sender; 0: the connection breaks; -1: none until the sender gives up; -2: it ends without one
	after   string // Retry-After
}

var (
	down   = &fault{"down", false, http.StatusServiceUnavailable, ""}
	faults = []*fault{
		down,
		{"error", false, http.StatusInternalServerError, ""},
		{"busy", false, http.StatusTooManyRequests, "1"},
		{"broken", false, 0, ""},
		{"doubtful", true, 0, ""},
		{"duplicate", true, http.StatusBadGateway, ""},
		{"slow", true, -1, ""},
		{"half closed", false, -2, ""},
	}
)

func open(t *testing.T, path string) *gate {
	g := &gate{}
	srv := httptest.NewServer(g)
	t.Cleanup(srv.Close)
	g.url = srv.URL + path
	return g
}

// to passes requests on from now on.
func (g *gate) to(t *testing.T, target string) {
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	g.target.Store(httputil.NewSingleHostReverseProxy(u))
	g.fault.Store(nil)
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f := g.fault.Load()
	if f == nil {
		g.target.Load().ServeHTTP(w, r)
		return
	}
	if f.deliver {
		g.target.Load().ServeHTTP(httptest.NewRecorder(), r)
	}
	_, _ = io.Copy(io.Discard, r.Body)
	g.failed.Add(1)
	switch f.answer {
	case 0:
		panic(http.ErrAbortHandler)
	case -1:
		<-r.Context().Done()
	case -2:
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer c.Close()
		_ = c.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, c) // until the sender closes its side
	default:
		if f.after != "" {
			w.Header().Set("Retry-After", f.after)
		}
		w.WriteHeader(f.answer)
	}
}
