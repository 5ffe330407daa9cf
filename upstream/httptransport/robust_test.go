package httptransport

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/store"
)

// within fails the test if f does not return.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatalf("%s did not end", what)
	}
}

// TestStalledAnswerDelaysNoRetry has a host stop in the middle of an answer that is
// retried, in a request with and without a timeout.
func TestStalledAnswerDelaysNoRetry(t *testing.T) {
	for _, timeout := range []time.Duration{-1, time.Hour} {
		var requests atomic.Int32
		host := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if requests.Add(1) > 1 {
				return
			}
			w.Header().Set("Content-Length", "10")
			w.WriteHeader(http.StatusServiceUnavailable)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
		r := newRig(t, "", host)
		r.Timeout, r.Retries = timeout, 1
		within(t, "the request", func() {
			resp, err := r.RoundTrip(request(t, "GET", ""))
			if err != nil || resp.StatusCode != 200 {
				t.Errorf("got %v, %v", resp, err)
				return
			}
			resp.Body.Close()
		})
	}
}

// TestPanicOfHashKeepsNoCluster removes the cluster after a panic: its stats end with
// the last request.
func TestPanicOfHashKeepsNoCluster(t *testing.T) {
	r := newRig(t, "", "127.0.0.1:1")
	r.Hash = func(*http.Request) (uint64, bool) { panic("hash") }
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was caught")
			}
		}()
		_, _ = r.RoundTrip(request(t, "GET", ""))
	}()
	r.m.Remove("c")
	waittest.Until(t, "the stats of the cluster are gone", func() bool {
		v := r.st.View()
		defer v.Close()
		for c := v.ByName(store.Scalars); c.Next(); {
			if strings.HasPrefix(string(c.AppendName(nil)), "cluster.c.") {
				return false
			}
		}
		return true
	})
}

// stuckBody is a body whose Close waits, as of a server's request of a client that
// sends slowly.
type stuckBody struct {
	io.Reader
	release chan struct{}
}

func (b stuckBody) Close() error { <-b.release; return nil }

func TestRefusalsDoNotWaitForTheBody(t *testing.T) {
	r := newRig(t, "", "127.0.0.1:1")
	release := make(chan struct{})
	defer close(release)
	send := func(method string) {
		within(t, method, func() {
			req := request(t, method, "")
			req.Body, req.ContentLength = stuckBody{strings.NewReader("x"), release}, -1
			if _, err := r.RoundTrip(req); err == nil {
				t.Errorf("%s: no error", method)
			}
		})
	}
	send(http.MethodConnect)
	r.m.Remove("c")
	send(http.MethodPost)
}

// TestServerClosesTheBody: a server closes the body of a request when its client needs
// no more of it. That breaks no answer.
func TestServerClosesTheBody(t *testing.T) {
	for _, tt := range []struct {
		err    error
		failed bool
	}{{http.ErrBodyReadAfterClose, false}, {io.EOF, false}, {io.ErrUnexpectedEOF, true}, {os.ErrDeadlineExceeded, true}} {
		req := request(t, "POST", "")
		req.Body = io.NopCloser(iotest.ErrReader(tt.err))
		b := newReplay(req, false)
		if _, err := b.Read(make([]byte, 1)); !errors.Is(err, tt.err) || b.failed() != tt.failed {
			t.Errorf("%v: failed %v, %v; want %v", tt.err, b.failed(), err, tt.failed)
		}
	}
}
