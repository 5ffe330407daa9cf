package admin

import (
	"errors"
	"math"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

// newHTTP configures the library that reads requests.
func (s *Server) newHTTP() *fasthttp.Server {
	return &fasthttp.Server{
		Handler:                      s.serveHTTP,
		ErrorHandler:                 s.unreadable,
		HeaderReceived:               s.headerReceived,
		ReadBufferSize:               bound(s.limits.HeaderBytes, 1<<20) + bound(s.limits.TargetBytes, 1<<20) + 64,
		MaxRequestBodySize:           bound(s.limits.BodyBytes, math.MaxInt32),
		ReadTimeout:                  s.limits.ReadTimeout,
		IdleTimeout:                  bound(s.limits.IdleTimeout, math.MaxInt64/2),
		DisablePreParseMultipartForm: true,
		SecureErrorLogMessage:        true,
		NoDefaultServerHeader:        true,
		NoDefaultDate:                true,
		NoDefaultContentType:         true,
		Logger:                       silent{},
	}
}

// silent discards the library's log, which has nothing to add to ours.
type silent struct{}

func (silent) Printf(string, ...any) {}

// headerReceived runs before the body is read. The body of a request that will be
// refused for its framing is not read, since its end is unknown.
func (s *Server) headerReceived(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	if s.frame(h) != nil {
		h.Del("Transfer-Encoding")
		h.Del("Expect")
		h.SetContentLength(0)
	}
	return fasthttp.RequestConfig{}
}

func (s *Server) frame(h *fasthttp.RequestHeader) *refusal {
	raw := string(h.RawHeaders())
	fields, ok := parseFields(raw)
	return checkFrame(string(h.Method()), string(h.Protocol()), string(h.RequestURI()), len(raw), fields, ok, &s.limits)
}

// serveHTTP answers a request that the library has read.
func (s *Server) serveHTTP(ctx *fasthttp.RequestCtx) {
	c, ok := ctx.Conn().(*conn)
	if !ok {
		return // cannot happen: every connection is one of ours
	}
	start := s.now()
	c.busy.Store(true)
	h := &ctx.Request.Header
	raw := string(h.RawHeaders())
	fields, ok := parseFields(raw)
	r := &Request{
		method: string(h.Method()), proto: string(h.Protocol()), fields: fields, body: ctx.PostBody(),
		peer: peerName(c), from: c.peer, listener: c.listener, tls: c.tls != nil, principal: c.principal, closing: s.session(),
	}
	target := string(h.RequestURI())
	refused := checkFrame(r.method, r.proto, target, len(raw), fields, ok, &s.limits)
	authority, pathAndQuery, ok := splitTarget(target)
	if !ok && refused == nil {
		refused = &refusal{400, "malformed request target\n"}
	}
	r.setTarget(pathAndQuery)
	r.host = r.Header("host")

	foreign := false
	if authority != "" && refused == nil {
		foreign = !s.hosts.accepts(r.host, r.listener)
		r.host = authority
	}
	x := s.exchange(c, r)
	c.linger = refused != nil
	_, _ = s.respond(x, r, refused, foreign, start)
	c.line, c.bytes = false, false
	c.busy.Store(false)
	if x.closing || isClosed(s.session()) {
		ctx.SetConnectionClose()
	}
}

// exchange prepares the response to r.
func (s *Server) exchange(c *conn, r *Request) *exchange {
	x := &exchange{conn: c, limits: &s.limits, stop: s.session(), http10: r.proto == "HTTP/1.0"}
	options := r.headers("connection")
	x.closing = c.reserved || hasToken(options, "close") || x.http10 && !hasToken(options, "keep-alive")
	if s.limits.ResponseTime > 0 {
		x.limit = time.Now().Add(scrapeTimeout(r.Header("x-prometheus-scrape-timeout-seconds"), s.limits.ResponseTime))
	}
	return x
}

// scrapeTimeout returns the response time for a scraper with a timeout of the given
// seconds.
func scrapeTimeout(seconds string, limit time.Duration) time.Duration {
	f, err := strconv.ParseFloat(seconds, 64)
	if err != nil || !(f > 0) || f >= limit.Seconds() {
		return limit
	}
	return time.Duration(f * float64(time.Second))
}

// response returns an empty response to r that is sent with t.
func (s *Server) response(t transport, r *Request) *Response {
	buf, _ := s.buffers.Get().(*[]byte)
	return &Response{
		server: s, transport: t, buf: (*buf)[:0], pooled: buf,
		status: 200, contentType: typeText, encodings: r.headers("accept-encoding"), withoutBody: r.method == "HEAD",
	}
}

// unreadable answers input that the library could not parse as a request, and closes
// the connection.
func (s *Server) unreadable(ctx *fasthttp.RequestCtx, err error) {
	c, ok := ctx.Conn().(*conn)
	if !ok || !c.bytes {
		return // nothing was sent, so nothing is answered
	}
	start := s.now()
	h := &ctx.Request.Header
	// The method is unknown: the library would report GET.
	r := &Request{proto: string(h.Protocol()), peer: peerName(c), listener: c.listener, closing: s.session()}
	refused := &refusal{400, "malformed request\n"}
	var small *fasthttp.ErrSmallBuffer
	var network net.Error
	switch {
	case errors.Is(err, errBareLF):
		refused.reason = "malformed request: lines must end in CR LF\n"
	case errors.As(err, &small) && c.line:
		refused = &refusal{431, "request header too large\n"}
	case errors.As(err, &small):
		refused = &refusal{414, "request target too long\n"}
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		refused = s.limits.bodyTooLarge()
		r.method = string(h.Method())
		_, pathAndQuery, _ := splitTarget(string(h.RequestURI()))
		r.setTarget(pathAndQuery)
	case errors.As(err, &network) && network.Timeout(), errors.Is(err, os.ErrDeadlineExceeded):
		refused = &refusal{408, "the request did not arrive in time\n"}
	}
	c.linger = true
	_, _ = s.respond(s.exchange(c, r), r, refused, false, start)
}

// rejectConnection answers a connection over the limit. With TLS there is no
// response, since the handshake is skipped, too.
func (s *Server) rejectConnection(c *conn) {
	if c.tls != nil {
		c.cut()
		return
	}
	r := &Request{proto: "HTTP/1.1", peer: peerName(c), listener: c.listener, closing: s.session()}
	x := &exchange{conn: c, limits: &Limits{StreamStall: 100 * time.Millisecond}, closing: true}
	w := s.response(x, r)
	w.SetHeader("retry-after", "1")
	s.done(w, r, s.now(), w.finish(w.text(503, "too many connections\n")))
	_ = c.Conn.Close()
}

func peerName(c *conn) string {
	if c.listener.unix {
		return "unix"
	}
	return c.Conn.RemoteAddr().String()
}

func (r *Request) setTarget(pathAndQuery string) {
	r.target = pathAndQuery
	r.path, _, _ = strings.Cut(pathAndQuery, "?")
}

func reason(status int) string { return fasthttp.StatusMessage(status) }
