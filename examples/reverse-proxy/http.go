package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/valyala/fasthttp"

	"github.com/statsd-admin/statsd-admin/histogram"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/lb"
)

const (
	maxBodyBytes   = 64 << 20
	defaultTimeout = 15 * time.Second
	clientTimeout  = time.Minute           // of reading, writing and waiting for a client, each, by default
	retryBackoff   = 25 * time.Millisecond // before the first retry, at most; doubled for each further one
	endTime        = 5 * time.Second       // for requests in flight when the proxy ends
)

// httpRoute passes on the requests of a listener.
type httpRoute struct {
	Route
	proxy     *proxy
	exchanges sync.Pool // *exchange

	total   *store.Counter
	classes [5]*store.Counter // 1xx to 5xx
	active  *store.Gauge
	took    *store.Histogram
}

// init asks for the stats.
func (r *httpRoute) init(sc *store.Scope) {
	r.total, r.active = sc.Counter("downstream_rq_total"), sc.Gauge("downstream_rq_active")
	r.exchanges.New = func() any { return new(exchange) }
	r.took = sc.Histogram("downstream_rq_time", histogram.Milliseconds)
	for i, class := range []string{"1xx", "2xx", "3xx", "4xx", "5xx"} {
		r.classes[i] = sc.Counter("downstream_rq_" + class)
	}
}

// serve implements the Serve of a listener.
func (r *httpRoute) serve(ctx context.Context, l net.Listener) error {
	s := r.newServer(r.handle, notes{r.proxy.server.Logger("http")})
	fresh := freshListener{Listener: l}
	err := s.Serve(&fresh)
	if err == nil {
		<-ctx.Done() // connections go on
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	fresh.closeUnused()
	if s.ShutdownWithContext(end) != nil {
		r.proxy.server.Logger("http").Warn("requests are still in flight at the end", "listener", r.Name)
	}
	r.proxy.pools.drain(nil, nil)
	return err
}

// newServer returns what serves clients. One that is slow is let go after a while.
func (r *httpRoute) newServer(handle fasthttp.RequestHandler, log fasthttp.Logger) *fasthttp.Server {
	return &fasthttp.Server{
		Handler: handle, Logger: log, MaxRequestBodySize: maxBodyBytes, CloseOnShutdown: true,
		NoDefaultServerHeader: true, NoDefaultDate: true, NoDefaultContentType: true, DisablePreParseMultipartForm: true,
		ReadTimeout: r.ReadTimeout.or(clientTimeout), WriteTimeout: r.WriteTimeout.or(clientTimeout), IdleTimeout: r.IdleTimeout.or(clientTimeout),
	}
}

// notes takes what the HTTP server has to say of connections that fail.
type notes struct{ log *slog.Logger }

// Printf implements [fasthttp.Logger].
func (n notes) Printf(format string, args ...any) { n.log.Debug(fmt.Sprintf(format, args...)) }

// freshListener knows the connections that have not sent anything yet, for which
// the end of an HTTP server would wait.
type freshListener struct {
	net.Listener
	unused sync.Map // *freshConn to nil
}

type freshConn struct {
	net.Conn
	from *freshListener
	used atomic.Bool
}

// Accept implements [net.Listener].
func (l *freshListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	f := &freshConn{Conn: c, from: l}
	l.unused.Store(f, nil)
	return f, nil
}

// Read implements [net.Conn].
func (c *freshConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.used.Load() {
		c.used.Store(true)
		c.from.unused.Delete(c)
	}
	return n, err
}

func (l *freshListener) closeUnused() {
	l.unused.Range(func(c, _ any) bool {
		_ = c.(*freshConn).Close()
		return true
	})
}

// handle serves one request.
func (r *httpRoute) handle(ctx *fasthttp.RequestCtx) {
	start := time.Now()
	r.total.Inc()
	r.active.Inc()
	leaving := dropNamed(&ctx.Request.Header) || ctx.Request.Header.ConnectionClose()
	if c := r.proxy.cluster(&r.Route); c == nil {
		answer(ctx, fasthttp.StatusServiceUnavailable)
	} else {
		x := r.exchanges.Get().(*exchange)
		*x = exchange{route: r, ctx: ctx, cluster: c, start: start, tried: x.tried[:0]}
		x.run()
		r.exchanges.Put(x)
	}
	if leaving || r.proxy.server.Lifecycle().ShouldClose(true) {
		ctx.SetConnectionClose()
	}
	if class := ctx.Response.StatusCode()/100 - 1; class >= 0 && class < len(r.classes) {
		r.classes[class].Inc()
	}
	r.took.Record(uint64(time.Since(start).Milliseconds()))
	r.active.Dec()
}

// answer answers in place of a host.
func answer(ctx *fasthttp.RequestCtx, status int) {
	ctx.Response.Reset()
	ctx.Response.SetStatusCode(status)
	ctx.Response.SetBodyString(fasthttp.StatusMessage(status) + "\n")
}

// exchange is a request with all its tries.
type exchange struct {
	route   *httpRoute
	ctx     *fasthttp.RequestCtx
	cluster *upstream.Cluster
	start   time.Time
	pick    lb.Context
	tried   []*host.Host
}

// outcome is what became of one try.
type outcome struct {
	host     *host.Host // nil: none was found
	attached bool       // to a connection
	answered bool       // the answer of the host is in the context
	retry    bool       // worth another try
	end      upstream.RequestEnd
}

// run tries until there is an answer, and counts what became of each try.
func (x *exchange) run() {
	r, cl := x.route, x.cluster
	if cl.MaintenanceMode() || cl.DropRequest() {
		cl.RequestRefused(nil, upstream.RequestEnd{Status: fasthttp.StatusServiceUnavailable})
		answer(x.ctx, fasthttp.StatusServiceUnavailable)
		return
	}
	if r.HashHeader != "" {
		if v := x.ctx.Request.Header.Peek(r.HashHeader); len(v) > 0 {
			x.pick.Hash, x.pick.HasHash = xxhash.Sum64(v), true
		}
	}
	prepare(x.ctx)
	timeout := r.Timeout.or(defaultTimeout)
	deadline := x.start.Add(timeout)
	retries, attached := &cl.Breakers(r.priority()).Retries, false
	for try := 0; ; try++ {
		o := x.try(deadline)
		attached = attached || o.attached
		if try > 0 {
			retries.Release()
		}
		again := o.retry && x.mayRetry(try, deadline, retries)
		x.count(&o, again)
		if again {
			x.tried = append(x.tried, o.host)
			x.pick.Retries, x.pick.Reject = 3, func(h *host.Host) bool { return slices.Contains(x.tried, h) }
			cl.Stats().RqRetryBackoffExponential.Inc()
			time.Sleep(min(rand.N(retryBackoff<<min(try, 4)), time.Until(deadline)))
			continue
		}
		if !o.answered {
			answer(x.ctx, o.end.Status)
		}
		if try > 0 && o.end.Status < 500 {
			cl.Stats().RqRetrySuccess.Inc()
		}
		if attached {
			cl.TimeoutBudget(time.Since(x.start), timeout)
		}
		return
	}
}

// mayRetry tells whether there may be one more try, which then takes one of the
// retries that the circuit breaker allows.
func (x *exchange) mayRetry(try int, deadline time.Time, retries *upstream.Resource) bool {
	stats := x.cluster.Stats()
	switch {
	case x.route.Retries == 0 || !time.Now().Before(deadline):
		return false
	case try >= x.route.Retries:
		stats.RqRetryLimitExceeded.Inc()
		return false
	case !retries.TryTake(): // counts that
		return false
	}
	stats.RqRetry.Inc()
	return true
}

// count tells the cluster of a try, and whether another one follows.
func (x *exchange) count(o *outcome, again bool) {
	if o.end.Retried = again; again && !o.answered {
		o.end.Status = 0 // the client never sees it
	}
	if !o.attached {
		x.cluster.RequestRefused(o.host, o.end)
		return
	}
	x.cluster.RequestFinished(o.host, o.end)
	if !o.end.Timeout {
		x.cluster.TimeoutBudgetPerTry(o.end.Took, time.Duration(x.route.PerTryTimeout))
	}
}

// try sends the request to a host.
func (x *exchange) try(deadline time.Time) (o outcome) {
	r, cl := x.route, x.cluster
	begin := time.Now()
	o.end.Status = fasthttp.StatusServiceUnavailable
	var err error
	if o.host, err = cl.Pick(&x.pick); err != nil {
		return o
	}
	until := deadline
	if t := begin.Add(time.Duration(r.PerTryTimeout)); r.PerTryTimeout > 0 && t.Before(deadline) {
		until = t
	}
	longest := cl.Config().HTTP.MaxStreamDuration
	if t := begin.Add(longest); longest > 0 && t.Before(until) {
		until = t
	} else {
		longest = 0
	}
	pool, err := r.proxy.pools.of(cl, o.host, r.priority(), r.proxy.serves)
	var c *client
	if err == nil {
		c, err = pool.get(until)
	}
	if err != nil {
		o.retry = !errors.Is(err, upstream.ErrOverflow)
		switch late := errors.Is(err, context.DeadlineExceeded); {
		case late && longest > 0:
			cl.Stats().RqMaxDurationReached.Inc()
			o.end.Status, o.retry = fasthttp.StatusRequestTimeout, false
		case late:
			o.end.Status = fasthttp.StatusGatewayTimeout
		}
		return o
	}
	requests := &cl.Breakers(r.priority()).Requests
	if !requests.TryTake() {
		pool.put(c, true)
		return o
	}
	defer requests.Release()
	o.attached = true
	cl.RequestStarted(o.host)
	c.Begin()
	c.sent = false
	err = x.pass(c, until)
	o.end.Took = time.Since(begin)
	if err != nil {
		x.ctx.Response.Reset()
		x.judge(&o, err, until == deadline, longest > 0)
		// The host may have done what it was sent, and not everything may be done twice.
		o.retry = o.retry && (!c.sent || idempotent(x.ctx.Method()))
		pool.put(c, false)
		c.End()
		return o
	}
	resp := &x.ctx.Response
	o.answered, o.end.Status = true, resp.StatusCode()
	o.end.Canary = string(resp.Header.Peek("X-Proxy-Upstream-Canary")) == "true"
	o.retry = o.end.Status >= 500
	if len(resp.Header.Peek("X-Proxy-Immediate-Health-Check-Fail")) > 0 {
		cl.ReportImmediateFailure(o.host)
	}
	c.End()
	// A connection of a cluster that was replaced meanwhile serves no more.
	leaves := dropNamed(&resp.Header)
	pool.put(c, !leaves && !resp.ConnectionClose() && c.in.Buffered() == 0 && r.proxy.cluster(&r.Route) == cl)
	for _, name := range hopByHop() {
		resp.Header.Del(name)
	}
	return o
}

// pass writes the request to a connection and reads the answer.
func (x *exchange) pass(c *client, until time.Time) error {
	if err := c.SetDeadline(until); err != nil {
		return err
	}
	if err := x.ctx.Request.Write(c.out); err != nil {
		return err
	}
	if err := c.out.Flush(); err != nil {
		return err
	}
	x.ctx.Response.SkipBody = x.ctx.IsHead()
	if err := x.ctx.Response.ReadLimitBody(c.in, maxBodyBytes); err != nil {
		return err
	}
	if n := x.ctx.Response.Header.Len(); n > int(x.cluster.Config().HTTP.MaxHeadersCount) {
		return errHeaders
	}
	if x.ctx.Response.StatusCode() == fasthttp.StatusSwitchingProtocols {
		return errSwitch
	}
	return nil
}

var (
	errHeaders = errors.New("an answer has too many headers")
	errSwitch  = errors.New("an answer switches to another protocol, for which nobody asked")
)

// judge says why there is no answer. last tells that there was no time for another
// try, long that the cluster ends requests that take so long.
func (x *exchange) judge(o *outcome, err error, last, long bool) {
	e := &o.end
	late := errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, fasthttp.ErrTimeout)
	switch {
	case late && long:
		x.cluster.Stats().RqMaxDurationReached.Inc()
		e.LocalReset, e.Status = true, fasthttp.StatusRequestTimeout
	case late && last:
		e.Timeout, e.Status = true, fasthttp.StatusGatewayTimeout
	case late:
		e.PerTryTimeout, e.Status, o.retry = true, fasthttp.StatusGatewayTimeout, true
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		e.RemoteReset, o.retry = true, true
	default:
		x.cluster.Stats().CxProtocolError.Inc()
		e.LocalReset, e.Status = true, fasthttp.StatusBadGateway
	}
}

// idempotent tells whether a request done twice is as if done once, as RFC 9110,
// section 9.2.2, says of its method.
func idempotent(method []byte) bool {
	switch string(method) {
	case fasthttp.MethodGet, fasthttp.MethodHead, fasthttp.MethodPut, fasthttp.MethodDelete, fasthttp.MethodOptions, fasthttp.MethodTrace:
		return true
	}
	return false
}

// hopByHop lists headers that are about one connection only.
func hopByHop() [7]string {
	return [...]string{
		fasthttp.HeaderConnection, "Keep-Alive", "Proxy-Connection", fasthttp.HeaderTE, fasthttp.HeaderTrailer,
		fasthttp.HeaderUpgrade, fasthttp.HeaderProxyAuthenticate,
	}
}

// dropNamed removes the headers that the header Connection names, which are about one
// connection too, and tells whether it names "close" among them.
func dropNamed(h interface {
	PeekAll(key string) [][]byte
	Del(key string)
}) (leaves bool) {
	var names []string
	for _, list := range h.PeekAll(fasthttp.HeaderConnection) {
		for name := range strings.SplitSeq(string(list), ",") {
			names = append(names, strings.ToLower(strings.TrimSpace(name)))
		}
	}
	for _, name := range names {
		switch name {
		case "close":
			leaves = true
		case "", "host", "content-length", "transfer-encoding": // tell what a message is
		default:
			h.Del(name)
		}
	}
	return leaves
}

// prepare makes the request of the client that of the proxy.
func prepare(ctx *fasthttp.RequestCtx) {
	h := &ctx.Request.Header
	ctx.Request.SetRequestURIBytes(h.RequestURI()) // as the client wrote it
	for _, name := range hopByHop() {
		h.Del(name)
	}
	from := ctx.RemoteIP().String()
	if before := h.Peek(fasthttp.HeaderXForwardedFor); len(before) > 0 {
		from = string(before) + ", " + from
	}
	h.Set(fasthttp.HeaderXForwardedFor, from)
}
