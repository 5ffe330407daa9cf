package sinks

import (
	"io"
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
	target atomic.Pointer[httputil.ReverseProxy] // nil: the receiver is down
	failed atomic.Int64                          // requests that it refused
	twice  atomic.Bool                           // the receiver gets each request twice, and the sender an error in between
}

func open(t *testing.T, path string) *gate {
	g := &gate{}
	srv := httptest.NewServer(g)
	t.Cleanup(srv.Close)
	g.url = srv.URL + path
	return g
}

func (g *gate) to(t *testing.T, target string) {
	if target == "" {
		g.target.Store(nil)
		return
	}
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	g.target.Store(httputil.NewSingleHostReverseProxy(u))
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p := g.target.Load()
	if p == nil {
		_, _ = io.Copy(io.Discard, r.Body)
		g.failed.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if g.twice.CompareAndSwap(true, false) {
		p.ServeHTTP(httptest.NewRecorder(), r)
		g.failed.Add(1)
		panic(http.ErrAbortHandler)
	}
	p.ServeHTTP(w, r)
}
