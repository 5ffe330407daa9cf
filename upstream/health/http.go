package health

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/match"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// idempotent is the header that allows net/http to repeat a request.
const idempotent = "Idempotency-Key"

// maxDrain bounds the unread body that is skipped to reuse a connection.
const maxDrain = 64 << 10

// transport keeps a connection to a host between checks.
type transport struct {
	http.Transport
	c    *Config
	host *host.Host
	at   config.Address           // where the kept connection leads
	conn atomic.Pointer[net.Conn] // the last one
}

// Close implements Prober. It closes the connection, also under a request that was
// abandoned.
func (t *transport) Close() {
	t.CloseIdleConnections()
	if conn := t.conn.Load(); conn != nil {
		_ = (*conn).Close() // perhaps again
	}
}

// send sends a request. Its context must end in time.
func (t *transport) send(r *http.Request) (*http.Response, error) {
	if a := t.host.HealthCheckAddress(); a != t.at {
		t.Close()
		t.at = a
	}
	resp, err := t.RoundTrip(r)
	if err != nil {
		t.Close() // a connection that hangs must not serve the next check
	}
	return resp, err
}

func (t *transport) dial(ctx context.Context) (net.Conn, error) {
	conn, err := t.c.Dial(ctx, t.host, t.host.HealthCheckAddress())
	if err == nil {
		t.conn.Store(&conn)
	}
	return conn, err
}

// newTransport returns a transport whose connections all lead to h. http2 means
// HTTP/2 by prior knowledge.
func newTransport(c *Config, h *host.Host, http2 bool) *transport {
	t := &transport{c: c, host: h}
	t.Transport = http.Transport{
		// The transport calls it in its own goroutine.
		DialContext: func(ctx context.Context, _, _ string) (conn net.Conn, err error) {
			if !guard.New(c.Logger).Run("connection of a health check", func() { conn, err = t.dial(ctx) }) {
				return nil, errPanic
			}
			return conn, err
		},
		DisableKeepAlives:      !c.Check.ReuseConnection,
		DisableCompression:     true,
		MaxConnsPerHost:        1,
		MaxResponseHeaderBytes: 64 << 10,
		Protocols:              new(http.Protocols),
	}
	if http2 {
		t.Protocols.SetUnencryptedHTTP2(true)
	} else {
		t.Protocols.SetHTTP1(true)
	}
	return t
}

// httpProber checks by an HTTP request.
type httpProber struct {
	*transport
	service *match.Matcher // nil: not checked
}

// Probe implements Prober.
func (p *httpProber) Probe(ctx context.Context) Outcome {
	resp, err := p.send(p.request(ctx))
	if err != nil {
		return p.c.unreachable(err)
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		// The body is the connection, whose reads do not end with ctx.
		resp.Body.Close()
		resp.Body = http.NoBody
	}
	defer resp.Body.Close()
	o, err := p.judge(resp)
	if err == nil {
		// The answer must end in time, and must be read before the connection can be
		// reused. If it is too long, the connection is closed.
		_, err = io.CopyN(io.Discard, resp.Body, maxDrain)
	}
	if err != nil && err != io.EOF {
		return p.c.broken(err)
	}
	return o
}

// request builds the request of a check.
func (p *httpProber) request(ctx context.Context) *http.Request {
	hc := &p.c.Check.HTTP
	authority := cmp.Or(p.host.HealthCheckHostname(), hc.Host, p.c.Cluster)
	r := &http.Request{
		Method: hc.Method, Header: make(http.Header), Host: authority,
		URL: &url.URL{Scheme: "http", Host: "health.invalid", Opaque: hc.Path},
	}
	r = r.WithContext(ctx)
	if len(hc.Send) > 0 {
		// Sent again if the kept connection turns out to be closed.
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(hc.Send)), nil }
		r.Body, _ = r.GetBody()
		r.ContentLength = int64(len(hc.Send))
	}
	r.Header.Set("User-Agent", strings.ToUpper(p.c.Product[:1])+p.c.Product[1:]+"/HC")
	addHeaders(r, hc.HeadersToAdd)
	for _, name := range hc.HeadersToRemove {
		if http.CanonicalHeaderKey(name) == "User-Agent" {
			r.Header.Set(name, "") // an absent one would be filled in
			continue
		}
		r.Header.Del(name)
	}
	if _, there := r.Header[idempotent]; !there {
		r.Header[idempotent] = nil // not sent: the transport may try again on a new connection
	}
	return r
}

// addHeaders applies the configured headers to r.
func addHeaders(r *http.Request, list []config.HeaderToAdd) {
	for _, h := range list {
		if h.Value == "" && !h.KeepEmpty {
			continue
		}
		if strings.EqualFold(h.Name, "host") || h.Name == ":authority" {
			if h.Append == config.OverwriteOrAdd || h.Append == config.OverwriteIfExists {
				r.Host = h.Value
			}
			continue
		}
		_, there := r.Header[http.CanonicalHeaderKey(h.Name)]
		switch {
		case h.Append == config.AppendOrAdd:
			r.Header.Add(h.Name, h.Value)
		case h.Append == config.OverwriteOrAdd, there == (h.Append == config.OverwriteIfExists):
			r.Header.Set(h.Name, h.Value)
		}
	}
}

// judge evaluates an answer: first the body, then the status, then the service name. It
// returns an error if the body ends early.
func (p *httpProber) judge(resp *http.Response) (Outcome, error) {
	hc := &p.c.Check.HTTP
	prefix := "X-" + p.c.Product + "-"
	has := func(name string) bool { return len(resp.Header[http.CanonicalHeaderKey(prefix+name)]) > 0 }
	bad := Outcome{Kind: Active, Exclude: has("immediate-health-check-fail")}
	if len(hc.Receive) > 0 {
		var in io.Reader = resp.Body
		if hc.ResponseBufferSize > 0 {
			in = io.LimitReader(resp.Body, int64(min(hc.ResponseBufferSize, 1<<40)))
		}
		body, err := io.ReadAll(in)
		if err != nil {
			return Outcome{}, err
		}
		if !contains(body, hc.Receive) {
			bad.Why = "unexpected body"
			return bad, nil
		}
	}
	if !inRanges(hc.Expected, resp.StatusCode) && !(len(hc.Expected) == 0 && resp.StatusCode == http.StatusOK) {
		bad.Retriable = inRanges(hc.Retriable, resp.StatusCode)
		bad.Why = "status " + strconv.Itoa(resp.StatusCode)
		return bad, nil
	}
	if p.service != nil && p.c.Rand()%100 < p.c.Runtime.Uint("health_check.verify_cluster", 100) {
		p.c.Stats.VerifyCluster.Inc()
		if !p.service.Match(resp.Header.Get(prefix + "upstream-healthchecked-cluster")) {
			bad.Why = "another service"
			return bad, nil
		}
	}
	return Outcome{Kind: Passed, Degraded: has("degraded")}, nil
}

func inRanges(list []config.StatusRange, status int) bool {
	return slices.ContainsFunc(list, func(r config.StatusRange) bool { return status >= r.Start && status < r.End })
}

// contains reports whether the payloads occur in b in order, with anything between
// them.
func contains(b []byte, payloads [][]byte) bool {
	for _, p := range payloads {
		i := bytes.Index(b, p)
		if i < 0 {
			return false
		}
		b = b[i+len(p):]
	}
	return true
}
