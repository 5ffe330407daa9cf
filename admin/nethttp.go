package admin

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/guard"
)

// ServeHTTP implements [http.Handler], so that a program can serve the interface from
// its own server, also under a prefix:
//
//	mux.Handle("/admin/", http.StripPrefix("/admin", srv))
//
// Requests pass the same checks as on the port of [Server.Listen] and get the same
// status, fields and body, byte for byte: links on pages are relative, so that they
// work under any prefix, and only commands to copy name the host and the prefix. Date,
// Connection, the framing of the body and limits on connections are up to the
// program's server.
//
// Clients that the program's server lets in can use every endpoint of the Config's
// Mode: on a port that other machines reach, set Auth, or Mode to [ModeReadOnly]. The
// host check accepts IP addresses, localhost and Config.AllowedHosts; "example.com",
// the host of [net/http/httptest.NewRequest], is none of them. Without the listener's
// address in the request context, the check is as strict as on a loopback address.
// After [Server.Close], the answer is always 503.
func (s *Server) ServeHTTP(rw http.ResponseWriter, hr *http.Request) {
	start := s.now()
	r := s.fromHTTP(hr)
	t := &httpTransport{rw: rw, control: http.NewResponseController(rw), request: hr, limits: &s.limits, server: s.ctx}
	if s.limits.ResponseTime > 0 {
		t.limit = time.Now().Add(scrapeTimeout(r.Header("x-prometheus-scrape-timeout-seconds"), s.limits.ResponseTime))
	}
	refused := checkFrame(r.method, protocol(hr), r.target, fieldBytes(r.fields), r.fields, true, &s.limits)
	switch {
	case refused != nil:
	case s.ctx.Err() != nil:
		refused = &refusal{503, "the server has shut down\n"}
	default:
		r.body, refused = t.readBody()
	}
	if r.listener.open && r.principal.Name == "" {
		s.warnExposed()
	}
	defer func() {
		if t.unwatch != nil {
			t.unwatch()
		}
	}()
	_, _ = s.respond(t, r, refused, false, start)
	if t.aborted {
		panic(http.ErrAbortHandler)
	}
	_ = t.control.SetWriteDeadline(time.Time{}) // the connection can serve other handlers
}

// fromHTTP returns a request without its body.
func (s *Server) fromHTTP(hr *http.Request) *Request {
	r := &Request{method: cmp.Or(hr.Method, "GET"), proto: hr.Proto, host: hr.Host, peer: hr.RemoteAddr, tls: hr.TLS != nil, closing: s.session()}
	if addr, ok := hr.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		r.listener = kindOf(addr)
	}
	if r.listener.unix {
		r.peer = "unix"
	} else if peer, err := netip.ParseAddrPort(hr.RemoteAddr); err == nil {
		r.from = peer.Addr().Unmap()
	}
	if hr.TLS != nil && len(hr.TLS.VerifiedChains) > 0 {
		r.principal = s.auth.certificate(hr.TLS.VerifiedChains[0][0])
	}
	if hr.Host != "" {
		r.fields = append(r.fields, Field{"host", hr.Host})
	}
	for _, name := range slices.Sorted(maps.Keys(hr.Header)) {
		for _, value := range hr.Header[name] {
			r.fields = append(r.fields, Field{strings.ToLower(name), value})
		}
	}
	for _, coding := range hr.TransferEncoding {
		r.fields = append(r.fields, Field{"transfer-encoding", coding})
	}
	target := hr.URL.EscapedPath()
	if hr.URL.RawQuery != "" || hr.URL.ForceQuery {
		target += "?" + hr.URL.RawQuery
	}
	r.setTarget(target)
	// The program may have taken a prefix off the path that the client sent.
	sent, _, _ := strings.Cut(hr.RequestURI, "?")
	if prefix, ok := strings.CutSuffix(sent, hr.URL.EscapedPath()); ok && strings.HasPrefix(prefix, "/") {
		r.prefix = prefix
	}
	return r
}

// protocol returns the protocol for checkFrame. The program's server has already
// framed requests over HTTP/2 and later.
func protocol(hr *http.Request) string {
	if hr.ProtoMajor >= 2 {
		return "HTTP/1.1"
	}
	return hr.Proto
}

// fieldBytes returns the size of header fields as HTTP/1.1 writes them.
func fieldBytes(fields []Field) (n int) {
	for _, f := range fields {
		n += len(f.Name) + len(f.Value) + len(": \r\n")
	}
	return n
}

// httpTransport sends a response through an [http.ResponseWriter].
type httpTransport struct {
	rw      http.ResponseWriter
	control *http.ResponseController
	request *http.Request
	limits  *Limits
	limit   time.Time       // deadline of the whole response; zero: none
	server  context.Context // ends when the server shuts down
	unwatch func() bool     // of watch
	aborted bool
}

// readBody reads the body within its limits.
func (t *httpTransport) readBody() ([]byte, *refusal) {
	if t.request.Body == nil {
		return nil, nil
	}
	if t.limits.ReadTimeout > 0 {
		_ = t.control.SetReadDeadline(time.Now().Add(t.limits.ReadTimeout)) // not every server has deadlines
		defer t.control.SetReadDeadline(time.Time{})
	}
	from := io.Reader(t.request.Body)
	if t.limits.BodyBytes >= 0 {
		from = io.LimitReader(from, int64(t.limits.BodyBytes)+1)
	}
	body, err := io.ReadAll(from)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &refusal{408, "the request did not arrive in time\n"}
	case err != nil:
		return nil, &refusal{400, "malformed request\n"}
	case over(len(body), t.limits.BodyBytes):
		return nil, t.limits.bodyTooLarge()
	}
	return body, nil
}

func (t *httpTransport) begin(w *Response, length int) error {
	if w.endless {
		t.limit = time.Time{}
	}
	header := t.rw.Header()
	w.visitHead(func(name, value string) { header.Add(name, value) })
	if length >= 0 {
		header.Set("Content-Length", strconv.Itoa(length))
	}
	t.rw.WriteHeader(w.status)
	return nil
}

func (t *httpTransport) body(a, b []byte) error {
	now := time.Now()
	if !t.limit.IsZero() && now.After(t.limit) {
		return ErrGone
	}
	_ = t.control.SetWriteDeadline(t.limits.chunkDeadline(now, t.limit)) // not every server has deadlines
	for _, p := range [...][]byte{a, b} {
		if len(p) == 0 {
			continue
		}
		if _, err := t.rw.Write(p); err != nil {
			return ErrGone
		}
	}
	if err := t.control.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return ErrGone
	}
	return nil
}

func (t *httpTransport) end() error { return nil }

func (t *httpTransport) abort() {
	t.aborted = true
	_ = t.control.Flush() // the head; the connection ends either way
}

func (t *httpTransport) hangUp() { t.rw.Header().Set("Connection", "close") }

func (t *httpTransport) watch(guard.Guard) <-chan struct{} {
	ctx, cancel := context.WithCancel(t.request.Context())
	t.unwatch = context.AfterFunc(t.server, cancel)
	return ctx.Done()
}

// HTTPHandler returns a [Handler] that calls h, so that h can be an [Endpoint].
// The server sets the fields that frame the response, and compresses it unless h
// sets Content-Encoding. The context of h's request is canceled when the server
// shuts down.
func HTTPHandler(h http.Handler) Handler {
	return func(w *Response, r *Request) (err error) {
		to := &httpWriter{w: w, header: make(http.Header)}
		defer func() {
			switch v := recover(); v {
			case nil:
			case http.ErrAbortHandler:
				err = ErrGone
			default:
				panic(v)
			}
		}()
		h.ServeHTTP(to, r.toHTTP())
		if !to.wrote {
			to.WriteHeader(http.StatusOK)
		}
		return w.err
	}
}

// toHTTP converts r to a net/http request.
func (r *Request) toHTTP() *http.Request {
	path, query, hasQuery := strings.Cut(r.target, "?")
	hr := &http.Request{
		Method: r.method, URL: &url.URL{Path: path, RawQuery: query, ForceQuery: hasQuery && query == ""}, RequestURI: r.target,
		Proto: r.proto, ProtoMajor: 1, ProtoMinor: 1, Header: make(http.Header), Host: r.host, RemoteAddr: r.peer,
		Body: io.NopCloser(bytes.NewReader(r.body)), ContentLength: int64(len(r.body)),
	}
	for _, f := range r.fields {
		if !strings.EqualFold(f.Name, "host") {
			hr.Header.Add(f.Name, f.Value)
		}
	}
	return hr.WithContext(closingContext{context.Background(), r.closing})
}

// closingContext is a context that is canceled when a channel is closed.
type closingContext struct {
	context.Context
	done <-chan struct{}
}

func (c closingContext) Done() <-chan struct{} { return c.done }

func (c closingContext) Err() error {
	if isClosed(c.done) {
		return context.Canceled
	}
	return nil
}

// httpWriter is the [http.ResponseWriter] of a [HTTPHandler].
type httpWriter struct {
	w      *Response
	header http.Header
	wrote  bool
}

func (h *httpWriter) Header() http.Header { return h.header }

// WriteHeader copies the fields, except fields that frame the response.
func (h *httpWriter) WriteHeader(status int) {
	if h.wrote || status < 200 {
		return
	}
	h.wrote = true
	h.w.SetStatus(status)
	for _, name := range slices.Sorted(maps.Keys(h.header)) {
		for _, value := range h.header[name] {
			value = strings.NewReplacer("\r", " ", "\n", " ").Replace(value)
			switch lower := strings.ToLower(name); lower {
			case "connection", "content-length", "date", "keep-alive", "server", "trailer", "transfer-encoding", "upgrade":
			case "content-type":
				h.w.SetType(value)
			case "content-encoding":
				h.w.encodings = nil
				h.w.SetHeader(lower, value)
			default:
				if isToken(lower) {
					h.w.fields = append(h.w.fields, Field{lower, value})
				}
			}
		}
	}
}

// isToken reports whether s is a valid header field name.
func isToken(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("()<>@,;:\\\"/[]?={}", c) >= 0 {
			return false
		}
	}
	return s != ""
}

func (h *httpWriter) Write(p []byte) (int, error) {
	if !h.wrote {
		if h.header.Get("Content-Type") == "" && h.header.Get("Content-Encoding") == "" {
			h.header.Set("Content-Type", http.DetectContentType(p))
		}
		h.WriteHeader(http.StatusOK)
	}
	return h.w.Write(p)
}

// FlushError sends the buffered part. [http.ResponseController] calls it.
func (h *httpWriter) FlushError() error {
	if !h.wrote {
		h.WriteHeader(http.StatusOK)
	}
	return h.w.Flush()
}

// Flush implements [http.Flusher].
func (h *httpWriter) Flush() { _ = h.FlushError() }
