package httptransport

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/config"
)

func TestAccept(t *testing.T) {
	for name, c := range map[string]config.HTTPOptions{
		"":                       {MaxHeadersCount: 1},
		"http2_protocol_options": {Protocol: config.HTTP2},
		"http3_protocol_options": {Protocol: config.HTTP3},
		"upstream_http_protocol_options.auto_sni":            {AutoSNI: true},
		"upstream_http_protocol_options.auto_san_validation": {AutoSANValidation: true},
		"http_protocol_options.send_fully_qualified_url":     {HTTP1Options: config.HTTP1Options{SendFullURL: true}},
		"http_protocol_options.enable_trailers":              {HTTP1Options: config.HTTP1Options{EnableTrailers: true}},
		"http_protocol_options.allow_chunked_length":         {HTTP1Options: config.HTTP1Options{AllowChunkedLength: true}},
	} {
		err := Accept(&config.Cluster{HTTP: c})
		if refused, ok := errors.AsType[*upstream.Unsupported](err); ok != (name != "") || ok && refused.Field != name {
			t.Errorf("%q: error %v", name, err)
		}
	}
}

func TestHashHeader(t *testing.T) {
	hash := HashHeader("x-user")
	r := request(t, "GET", "")
	if _, ok := hash(r); ok {
		t.Error("a request without the header has a hash")
	}
	r.Header.Set("X-User", "a")
	a, ok := hash(r)
	r.Header.Set("X-User", "b")
	if b, _ := hash(r); !ok || a == b {
		t.Errorf("hashes %d and %d, %t", a, b, ok)
	}
}

func TestForwardedOrigin(t *testing.T) {
	for text, want := range map[string]upstream.Origin{
		"127.0.0.1": upstream.InternalOrigin, "10.1.2.3": upstream.InternalOrigin, "fd00::1": upstream.InternalOrigin,
		"203.0.113.7": upstream.ExternalOrigin, "10.0.0.1, 10.0.0.2": upstream.ExternalOrigin, "": upstream.ExternalOrigin, "unknown": upstream.ExternalOrigin,
	} {
		if got := ForwardedOrigin(&http.Request{Header: http.Header{"X-Forwarded-For": {text}}}); got != want {
			t.Errorf("%q: origin %d, want %d", text, got, want)
		}
	}
}

// slowBody is a body that does not arrive in time.
type slowBody struct{ io.Reader }

func (slowBody) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }
func (slowBody) Close() error             { return nil }

// TestBodyThatIsLate: a client whose body does not arrive in time gets status 408, and
// its connection is closed.
func TestBodyThatIsLate(t *testing.T) {
	r := newRig(t, "", serve(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	req := request(t, "POST", "x")
	req.Body = slowBody{}
	_, err := r.RoundTrip(req)
	w := httptest.NewRecorder()
	HandleError(w, req, err)
	if w.Code != http.StatusRequestTimeout || w.Header().Get("Connection") != "close" {
		t.Errorf("answer %d, %v, of error %v", w.Code, w.Header(), err)
	}
	r.check(map[string]int{"upstream_rq_tx_reset": 1, "upstream_rq_timeout": 0})
}
