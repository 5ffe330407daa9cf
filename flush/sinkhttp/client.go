// Package sinkhttp posts the packets of sinks over HTTP and classifies errors:
// certainly not delivered, possibly delivered, or permanently refused.
package sinkhttp

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/internal/boundedfile"
	"github.com/statsd-admin/statsd-admin/internal/redact"
)

// Config are the settings of a [Client].
type Config struct {
	// URL is where packets are posted: http or https, without user information.
	// Required.
	URL string
	// Headers are added to each request. Host replaces the host of the URL there.
	Headers map[string]string
	// BearerTokenFile holds a token for the Authorization header. It is read for
	// each request, so that a token can be replaced. Default: none.
	BearerTokenFile string
	// TLS are the settings of https. Default: the system's authorities.
	TLS *tls.Config
	// Timeout limits an attempt. Default 10 s.
	Timeout time.Duration
	// UserAgent is the header of that name. Default "statsd-admin".
	UserAgent string
	// Connections limits the connections to the receiver. Default 1.
	Connections int
}

// Fields returns the headers of a request, including the token, which is read
// from its file.
func (c *Config) Fields() (map[string]string, error) {
	fields := map[string]string{}
	for name, value := range c.Headers {
		fields[http.CanonicalHeaderKey(name)] = value
	}
	if path := c.BearerTokenFile; path != "" {
		token, err := boundedfile.Read(path, 64<<10)
		if err != nil {
			return nil, err
		}
		token = bytes.TrimSpace(token)
		if len(token) == 0 || bytes.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return nil, fmt.Errorf("sinkhttp: no token in %q", path) // it is being replaced: a receiver would refuse the packet for good
		}
		fields["Authorization"] = "Bearer " + string(token)
	}
	return fields, nil
}

// maxAnswer is how much of an answer is read. It can have a text for each point of the
// request.
const maxAnswer = 1 << 20

// maxShown is how much of the text of an answer an error contains.
const maxShown = 512

// Client posts packets. Its methods are safe for concurrent use.
type Client struct {
	cfg    Config
	url    *url.URL
	client http.Client
}

// New checks cfg and returns a client. It opens no connection.
func New(cfg Config) (*Client, error) {
	u, err := CheckURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = 10 * time.Second
	}
	cfg.UserAgent = cmp.Or(cfg.UserAgent, "statsd-admin")
	c := &Client{cfg: cfg, url: u}
	c.client = http.Client{
		Transport: &http.Transport{
			TLSClientConfig: cfg.TLS, MaxConnsPerHost: max(cfg.Connections, 1), MaxIdleConnsPerHost: max(cfg.Connections, 1),
			IdleConnTimeout: 5 * time.Minute, MaxResponseHeaderBytes: 64 << 10, DisableCompression: true,
			DialContext: dialer(cfg.Timeout), ForceAttemptHTTP2: cfg.TLS == nil, // as without DialContext
			TLSHandshakeTimeout: cfg.Timeout, // without limits, connecting outlives the request and keeps its place
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       cfg.Timeout,
	}
	return c, nil
}

// CheckURL parses the address of a receiver. The error does not contain secrets.
func CheckURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("not a URL such as https://host/path") // not quoted: it can have secrets
	case u.User != nil:
		return nil, errors.New("the URL has user information; use a header")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		withoutSecrets(u)
		return nil, fmt.Errorf("%q is not http://host or https://host", u.Redacted())
	}
	return u, nil
}

// withoutSecrets removes the query and the fragment of u, and a path that seems to
// contain a secret.
func withoutSecrets(u *url.URL) {
	u.RawQuery, u.Fragment, u.RawFragment = "", "", ""
	if shown := redact.URLPath(u.Path); shown != u.Path {
		u.Path, u.RawPath = shown, shown
	}
}

// Target returns the URL without its query, and without its path if that seems to
// contain a secret.
func (c *Client) Target() string {
	return c.url.Scheme + "://" + c.url.Host + redact.URLPath(c.url.Path)
}

// Close closes idle connections.
func (c *Client) Close() { c.client.CloseIdleConnections() }

// Answer is the response of a receiver.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte // at most 1 MiB of it
}

// Post posts body with a header and returns the answer, whatever its status. An
// error wraps [sinkqueue.ErrAmbiguous] if the receiver may have received the
// whole request.
func (c *Client) Post(ctx context.Context, header http.Header, body []byte) (*Answer, error) {
	var whole atomic.Bool             // the request left completely
	var used atomic.Pointer[net.Conn] // for the request
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn:      func(i httptrace.GotConnInfo) { used.Store(&i.Conn) },
		WroteRequest: func(i httptrace.WroteRequestInfo) { whole.Store(i.Err == nil) },
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.cfg.URL, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, sinkqueue.ErrRefused)
	}
	req.GetBody = nil // never sent twice unnoticed
	if len(body) > 0 {
		req.Body = packet{bytes.NewReader(body)}
	}
	maps.Copy(req.Header, header)
	fields, err := c.cfg.Fields()
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", c.cfg.UserAgent)
	for name, value := range fields {
		req.Header.Set(name, value)
	}
	req.Host = fields["Host"] // empty: that of the URL
	resp, err := c.client.Do(req)
	if err != nil {
		if u := (*url.Error)(nil); errors.As(err, &u) {
			err = u.Err // without the URL, which can have secrets
		}
		if conn := used.Load(); conn != nil && errors.Is(err, context.DeadlineExceeded) {
			_ = (*conn).Close() // the other end may be gone, and HTTP/2 would use it again
		}
		if whole.Load() {
			err = fmt.Errorf("%w: %w", err, sinkqueue.ErrAmbiguous)
		}
		return nil, err
	}
	defer resp.Body.Close()
	a := &Answer{Status: resp.StatusCode, Header: resp.Header}
	if resp.StatusCode != http.StatusSwitchingProtocols { // then it is the connection, whose reads do not end in time
		a.Body, _ = io.ReadAll(io.LimitReader(resp.Body, maxAnswer)) // the status says enough
	}
	return a, nil
}

// packet is the body of a request.
type packet struct{ *bytes.Reader }

// Close does nothing.
func (packet) Close() error { return nil }

// dialer returns a function that opens a connection.
func dialer(timeout time.Duration) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := (&net.Dialer{Timeout: timeout}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return direct{c}, nil
	}
}

// direct is a connection that writes a packet from where it is. Package net/http would
// copy it piece by piece into a buffer of 32 KiB.
type direct struct{ net.Conn }

// ReadFrom writes r to the connection until its end.
func (d direct) ReadFrom(r io.Reader) (int64, error) {
	if l, ok := r.(*io.LimitedReader); ok {
		if p, ok := l.R.(packet); ok && int64(p.Len()) <= l.N {
			n, err := p.WriteTo(d.Conn)
			l.N -= n
			return n, err
		}
	}
	return io.Copy(d.Conn, r)
}

// Err returns the error for the status of an answer, nil for 2xx. After 429 and
// 503 the packet was not delivered; after 502 and 504, and with every5xx after
// any other status from 500 on, it may have been. These errors respect
// Retry-After. All other statuses are refusals.
func (a *Answer) Err(every5xx bool) error {
	if a.Status/100 == 2 {
		return nil
	}
	err := fmt.Errorf("status %d%s", a.Status, a.reason())
	switch {
	case a.Status == http.StatusTooManyRequests || a.Status == http.StatusServiceUnavailable:
	case a.Status == http.StatusBadGateway || a.Status == http.StatusGatewayTimeout || every5xx && a.Status >= 500:
		err = fmt.Errorf("%w: %w", err, sinkqueue.ErrAmbiguous)
	default:
		return fmt.Errorf("%w: %w", err, sinkqueue.ErrRefused)
	}
	if after := retryAfter(a.Header.Get("Retry-After"), time.Now()); after > 0 {
		return &sinkqueue.Wait{After: after, Err: err}
	}
	return err
}

// reason returns what an answer says about its status, behind a colon: the place of a
// redirect, which is not followed, or the text.
func (a *Answer) reason() string {
	text := a.Body
	if a.Status/100 == 3 {
		to, err := url.Parse(a.Header.Get("Location"))
		if err == nil && to.String() != "" {
			withoutSecrets(to)
			return fmt.Sprintf(": redirect to %.512q is not followed", to.Redacted())
		}
	} else if z, err := gzip.NewReader(bytes.NewReader(text)); err == nil { // some proxies compress it unasked
		text, _ = io.ReadAll(io.LimitReader(z, maxShown)) // what there is of it
	}
	shown := strings.TrimSpace(strings.ToValidUTF8(string(text[:min(len(text), maxShown)]), "\ufffd"))
	if shown == "" {
		return ""
	}
	return ": " + shown
}

// retryAfter returns the time that a header asks for, as seconds or as a date.
func retryAfter(text string, now time.Time) time.Duration {
	if n, err := strconv.ParseUint(text, 10, 32); err == nil {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}
