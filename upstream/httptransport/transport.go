package httptransport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/lb"
	"github.com/statsd-admin/statsd-admin/upstream/transport"
)

const (
	defaultTimeout = 15 * time.Second
	retryBackoff   = 25 * time.Millisecond  // before the first retry, at most; doubled for each further one
	maxReplay      = 64 << 10               // of a request's body, kept for retries
	maxDiscard     = 64 << 10               // of an answer that is retried
	discardTime    = 100 * time.Millisecond // to receive the rest of an answer that is retried
	maxInterim     = 10                     // answers with status 1xx before the final one
)

// Transport is an [http.RoundTripper] that sends requests to the hosts of a
// cluster. The URL of a request only names its path and, without a field Host, the host
// in its header: the cluster has the addresses, and decides whether connections use TLS.
// A request with the scheme https fails if the connection to its host does not. The
// fields must not be changed once it is used.
type Transport struct {
	// Pools holds the connections. It must be set, and can be shared.
	Pools *Pools
	// Cluster returns the handle of the cluster, or nil if there is none at the
	// moment. It is called for each request and must be set.
	Cluster func() *upstream.Handle
	// Priority is the priority of the circuit breakers.
	Priority upstream.Priority
	// Timeout bounds a request with its retries and its answer; 0 means 15 s,
	// a negative value no timeout.
	Timeout time.Duration
	// PerTryTimeout bounds each try; 0 means Timeout alone.
	PerTryTimeout time.Duration
	// Retries is the maximum number of retries of a request, on another host if
	// possible: after connect failures and 5xx responses, and after resets and
	// timeouts of a try if the method is idempotent or nothing was sent. A
	// request whose body exceeds 64 KiB is not retried once it has been sent.
	Retries int
	// Hash returns the hash of a request for the policies RING_HASH and MAGLEV.
	// Nil hashes nothing.
	Hash func(*http.Request) (hash uint64, ok bool)
	// Origin returns the kind of client that sent a request, by which
	// cluster.<name>.internal.upstream_rq_* and external.upstream_rq_* count it. Nil
	// counts in neither.
	Origin func(*http.Request) upstream.Origin
}

// Error is the error of a request without an answer.
type Error struct {
	Status int // the HTTP status for the client, such as 503
	Err    error
}

// Error returns the text of the cause.
func (e *Error) Error() string { return "httptransport: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// HandleError answers a request with the status of err, 502 if it is not an
// [*Error]. With status 408 it closes the connection, since the rest of the request
// may still arrive. It is an ErrorHandler for [net/http/httputil.ReverseProxy].
func HandleError(w http.ResponseWriter, _ *http.Request, err error) {
	status := http.StatusBadGateway
	if e, ok := errors.AsType[*Error](err); ok {
		status = e.Status
	}
	if status == http.StatusRequestTimeout {
		w.Header().Set("Connection", "close")
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, http.StatusText(status)+"\n")
}

var (
	errNoCluster   = errors.New("no such cluster")
	errRefused     = errors.New("the cluster is under maintenance or overloaded")
	errHeaderBytes = errors.New("the headers of the answer are too long")
	errHeaderCount = errors.New("the answer has too many headers")
	errSwitch      = errors.New("the answer switches to another protocol")
	errInterim     = errors.New("too many interim answers")
	errStatus      = errors.New("invalid status")
	errPlain       = errors.New("the URL has the scheme https, but the cluster connects to the host without TLS")
)

// Check returns an [*Error] with status 400 for requests that no host can
// serve: requests without a host, CONNECT requests, and the HTTP/2 preface.
// [Transport.RoundTrip] checks requests before it picks a host.
func Check(r *http.Request) error {
	switch {
	case r.Method == "PRI" || r.Method == http.MethodConnect:
		return &Error{http.StatusBadRequest, fmt.Errorf("method %s cannot be forwarded", r.Method)}
	case r.Host == "" && r.URL.Host == "":
		return &Error{http.StatusBadRequest, errors.New("the request names no host")}
	}
	return nil
}

// RoundTrip implements [http.RoundTripper]. Errors other than invalid requests are
// of type [*Error]. The body of the answer must be closed.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	x := &exchange{t: t, r: r, start: time.Now(), body: newReplay(r, t.Retries > 0)}
	if t.Hash != nil { // it and Origin can panic: nothing is acquired yet
		x.pick.Hash, x.pick.HasHash = t.Hash(r)
	}
	if t.Origin != nil {
		x.origin = t.Origin(r)
	}
	if err := Check(r); err != nil {
		x.body.Close()
		return nil, err
	}
	if x.handle = t.Cluster(); x.handle != nil {
		x.cluster = x.handle.Acquire()
	}
	if x.cluster == nil {
		x.body.Close()
		return nil, &Error{http.StatusServiceUnavailable, errNoCluster}
	}
	resp, err := x.run()
	if err != nil {
		x.body.Close()
		return nil, err
	}
	return resp, nil
}

// exchange is a request with all its tries.
type exchange struct {
	t       *Transport
	r       *http.Request
	handle  *upstream.Handle
	cluster *upstream.Cluster
	body    *replay

	start    time.Time
	timeout  time.Duration // negative: none
	deadline time.Time     // zero: none
	pick     lb.Context
	tried    []*host.Host
	attached bool // a try got a connection
	origin   upstream.Origin
}

// try is one attempt to get an answer.
type try struct {
	x     *exchange
	host  *host.Host // nil if none was found
	ours  bool       // the client or this machine kept it from the host
	begin time.Time
	until time.Time // zero: no deadline
	last  bool      // until is the deadline of the exchange
	long  bool      // until comes from the cluster's max_stream_duration

	pool    *pool
	client  *client // nil unless attached
	resp    *http.Response
	end     upstream.RequestEnd
	err     error
	retry   bool                  // worth another try
	written chan struct{}         // closed once the request is written; nil if it is
	partly  bool                  // not all of it could be written; set before written is closed
	invalid atomic.Pointer[error] // why it cannot be written to any connection
	stop    func() bool
	free    bool // the connection can serve another request
}

// run makes tries until one has an answer, and counts each.
func (x *exchange) run() (*http.Response, error) {
	t, cl := x.t, x.cluster
	if cl.MaintenanceMode() || cl.DropRequest() {
		cl.RequestRefused(nil, upstream.RequestEnd{Status: http.StatusServiceUnavailable, Origin: x.origin})
		cl.Release()
		return nil, &Error{http.StatusServiceUnavailable, errRefused}
	}
	if x.timeout = t.Timeout; x.timeout == 0 {
		x.timeout = defaultTimeout
	}
	if x.timeout > 0 {
		x.deadline = x.start.Add(x.timeout)
	}
	if name := cl.OriginalDstHeader(); name != "" {
		if v, ok := x.r.Header[http.CanonicalHeaderKey(name)]; ok && len(v) > 0 {
			x.pick.DestinationHeader, x.pick.HasDestinationHeader = v[0], true
		}
	}
	retries := &cl.Breakers(t.Priority).Retries
	for n := 0; ; n++ {
		a := x.try()
		if n > 0 {
			retries.Release()
		}
		a.end.Retried = a.retry && x.mayRetry(a, n, retries)
		if a.end.Retried {
			a.giveUp()
			x.tried = append(x.tried, a.host)
			x.pick.Retries, x.pick.Reject = 3, func(h *host.Host) bool { return slices.Contains(x.tried, h) }
			cl.Stats().RqRetryBackoffExponential.Inc()
			x.wait(rand.N(retryBackoff << min(n, 4)))
			continue
		}
		if n > 0 && a.end.Status < 500 && a.resp != nil {
			cl.Stats().RqRetrySuccess.Inc()
		}
		if a.resp == nil {
			a.finish(a.err)
			if x.body != nil && x.body.late.Load() {
				a.end.Status = http.StatusRequestTimeout
			}
			return nil, &Error{max(a.end.Status, http.StatusBadRequest), a.err}
		}
		a.attachBody()
		return a.resp, nil
	}
}

// wait waits before a retry, not beyond the end of the request.
func (x *exchange) wait(d time.Duration) {
	if !x.deadline.IsZero() {
		d = min(d, time.Until(x.deadline))
	}
	select {
	case <-time.After(d):
	case <-x.r.Context().Done():
	}
}

// mayRetry reports whether another try is allowed. If so it takes a retry from the
// circuit breaker.
func (x *exchange) mayRetry(a *try, n int, retries *upstream.Resource) bool {
	stats := x.cluster.Stats()
	switch {
	case x.t.Retries == 0 || x.r.Context().Err() != nil || !x.deadline.IsZero() && !time.Now().Before(x.deadline):
		return false
	case n >= x.t.Retries:
		stats.RqRetryLimitExceeded.Inc()
		return false
	case !a.requestDone() || !x.body.rewind():
		stats.RetryOrShadowAbandoned.Inc()
		return false
	case !retries.TryTake(): // counts the overflow
		return false
	}
	stats.RqRetry.Inc()
	return true
}

// try sends the request to a host and awaits the headers of the answer.
func (x *exchange) try() *try {
	a := &try{x: x, begin: time.Now(), until: x.deadline, last: true}
	a.end.Status, a.end.Origin = http.StatusServiceUnavailable, x.origin
	if a.host, a.err = x.cluster.Pick(&x.pick); a.err != nil {
		return a
	}
	sooner := func(d time.Duration) bool {
		t := a.begin.Add(d)
		if d <= 0 || !a.until.IsZero() && !t.Before(a.until) {
			return false
		}
		a.until, a.last = t, false
		return true
	}
	sooner(x.t.PerTryTimeout)
	a.long = sooner(x.cluster.Config().HTTP.MaxStreamDuration)
	if a.err = a.connect(); a.err != nil {
		return a
	}
	a.resp, a.err = a.exchange()
	if a.err != nil {
		a.judge(a.err)
		// The host may have acted on the request, and not every method can be repeated.
		a.retry = a.retry && (!a.client.sent.Load() || idempotent(x.r.Method))
		return a
	}
	a.end.Status = a.resp.StatusCode
	failed, canary := x.cluster.AnswerHeaders()
	a.end.Canary = a.resp.Header.Get(canary) == "true"
	a.retry = a.end.Status >= 500
	if len(a.resp.Header[failed]) > 0 {
		x.cluster.ReportImmediateFailure(a.host)
	}
	return a
}

// connect attaches the request to a connection.
func (a *try) connect() error {
	x := a.x
	ctx := x.r.Context()
	if !a.until.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, a.until)
		defer cancel()
	}
	p, err := x.t.Pools.of(x.handle, x.cluster, a.host, x.t.Priority)
	var c *client
	if err == nil {
		c, err = p.get(ctx)
	}
	if err != nil {
		a.retry = !errors.Is(err, upstream.ErrOverflow) && x.r.Context().Err() == nil
		failed, ok := errors.AsType[*transport.Error](err)
		a.ours = ok && failed.Local
		switch late := errors.Is(err, context.DeadlineExceeded); {
		case errors.Is(x.r.Context().Err(), context.Canceled):
			a.ours, a.end.Status = true, 0 // the client is gone
		case late && a.long:
			x.cluster.Stats().RqMaxDurationReached.Inc()
			a.end.Status, a.retry = http.StatusRequestTimeout, false
		case late:
			a.end.Status = http.StatusGatewayTimeout
		}
		return err
	}
	if _, secure := c.Conn.Conn.(*tls.Conn); !secure && x.r.URL.Scheme == "https" {
		p.put(c, true)
		a.ours, a.end.Status = true, http.StatusBadGateway
		return errPlain
	}
	if !x.cluster.Breakers(x.t.Priority).Requests.TryTake() {
		p.put(c, true)
		return upstream.ErrOverflow
	}
	a.pool, a.client, x.attached = p, c, true
	x.cluster.RequestStarted(a.host)
	c.Begin()
	c.sent.Store(false)
	_ = c.SetDeadline(a.until) // a broken connection shows it in Write
	a.stop = context.AfterFunc(x.r.Context(), func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	return nil
}

// exchange writes the request and reads the headers of the final answer.
func (a *try) exchange() (*http.Response, error) {
	c := a.client
	write := func(r *http.Request) error {
		err := r.Write(c.out)
		if err == nil {
			err = c.out.Flush()
		}
		if err != nil && !c.cut { // such as a body of another length
			a.invalid.Store(&err)
		}
		return err
	}
	r := a.x.r.WithContext(context.Background())
	if r.Header["Upgrade"] != nil { // nothing here speaks another protocol
		r.Header = r.Header.Clone()
		r.Header.Del("Upgrade")
		r.Header.Del("Connection")
	}
	if r.Body = nil; a.x.body == nil {
		r.ContentLength = 0
		if err := write(r); err != nil {
			return nil, err
		}
	} else {
		r.Body = io.NopCloser(a.x.body) // closed when no retry can follow
		written := make(chan struct{})
		a.written = written
		go func() {
			defer close(written)
			a.partly = true
			if !guard.New(a.x.t.Pools.Logger).Run("body of a request", func() { a.partly = write(r) != nil }) {
				a.x.body.broken.Store(true)
			}
			if a.x.body.failed() || a.invalid.Load() != nil {
				_ = c.SetReadDeadline(time.Unix(1, 0)) // no answer will come
			}
		}()
	}
	o := &a.x.cluster.Config().HTTP
	headerBytes := int(min(o.MaxResponseHeadersKB, 8<<10)) << 10
	c.limit, c.head = headerBytes+readBuffer, c.head[:0]
	defer func() { c.limit = -1 }()
	for range maxInterim + 1 {
		resp, err := http.ReadResponse(c.in, a.x.r)
		if err != nil {
			switch invalid := a.invalid.Load(); {
			case invalid != nil:
				err = *invalid
			case c.lost != nil: // a part of a line is not malformed
				err = c.lost
			}
			return nil, err
		}
		count, size := 0, 0
		for name, values := range resp.Header {
			for _, v := range values {
				count, size = count+1, size+len(name)+len(v)+len(": \r\n")
			}
		}
		switch {
		case count > int(o.MaxHeadersCount):
			return nil, errHeaderCount
		case size > headerBytes:
			return nil, errHeaderBytes
		case resp.StatusCode == http.StatusSwitchingProtocols:
			return nil, errSwitch
		case resp.StatusCode < 100:
			return nil, errStatus
		case resp.StatusCode >= 200:
			if resp.Close {
				c.connectionNames(func(name string) {
					if !strings.EqualFold(name, "Content-Length") {
						resp.Header.Del(name)
					}
				})
			}
			return resp, nil
		}
	}
	return nil, errInterim
}

// requestDone reports whether nothing writes the request any more. If its body was
// read to the end, the rest takes a moment.
func (a *try) requestDone() bool {
	if a.written == nil {
		return true
	}
	select {
	case <-a.written:
		return true
	default:
	}
	if !a.x.body.ended.Load() {
		return false
	}
	select {
	case <-a.written:
		return true
	case <-time.After(100 * time.Millisecond):
		return false
	}
}

// judge decides what an error says about the request, the host and the connection.
func (a *try) judge(err error) {
	e, ctx := &a.end, a.x.r.Context()
	late := errors.Is(err, os.ErrDeadlineExceeded)
	switch {
	case a.x.body.failed() || a.invalid.Load() != nil || ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		e.LocalReset, e.Status = true, 0 // the client is gone, or to blame
	case late && a.long:
		a.x.cluster.Stats().RqMaxDurationReached.Inc()
		e.LocalReset, e.Status = true, http.StatusRequestTimeout
	case late && (a.last || ctx.Err() != nil):
		e.Timeout, e.Status = true, http.StatusGatewayTimeout
	case late:
		e.PerTryTimeout, e.Status, a.retry = true, http.StatusGatewayTimeout, true
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		e.RemoteReset, a.retry = true, true
	default:
		e.BadAnswer, e.Status = true, http.StatusBadGateway
	}
}

// giveUp ends a try that is followed by another one.
func (a *try) giveUp() {
	if a.resp == nil {
		a.end.Status = 0 // the client never sees it
		a.finish(a.err)
		return
	}
	if soon := time.Now().Add(discardTime); a.until.IsZero() || soon.Before(a.until) {
		_ = a.client.SetReadDeadline(soon) // a broken connection shows it in Read
	}
	_, err := io.CopyN(io.Discard, a.resp.Body, maxDiscard)
	a.free = err == io.EOF
	a.finish(nil)
}

// finish ends the try: it releases its resources and counts it.
func (a *try) finish(err error) {
	x := a.x
	cl, retried := x.cluster, a.end.Retried
	if a.client != nil {
		a.end.Took = time.Since(a.begin)
		reusable := a.stop() && err == nil && a.free && a.requestDone() && !a.partly && !a.resp.Close && a.client.in.Buffered() == 0 &&
			x.handle.Current() == cl // a connection of a replaced cluster serves no more
		cl.Breakers(x.t.Priority).Requests.Release()
		if err != nil { // counted as closed under the request
			a.pool.put(a.client, false)
			a.client.End()
		} else {
			a.client.End()
			a.pool.put(a.client, reusable)
		}
		cl.RequestFinished(a.host, a.end)
		if !a.end.Timeout {
			cl.TimeoutBudgetPerTry(a.end.Took, x.t.PerTryTimeout)
		}
	} else {
		h := a.host
		if a.ours {
			h = nil
		}
		cl.RequestRefused(h, a.end)
	}
	if retried {
		return
	}
	if x.attached {
		cl.TimeoutBudget(time.Since(x.start), max(x.timeout, 0))
	}
	x.body.Close()
	cl.Release()
}

// idempotent reports whether RFC 9110, section 9.2.2, calls a method idempotent.
func idempotent(method string) bool {
	switch method {
	case "", http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

// attachBody finishes the try at the end of the answer's body.
func (a *try) attachBody() {
	if a.resp.Body == http.NoBody {
		a.free = true
		a.finish(nil)
		return
	}
	a.resp.Body = &answer{try: a, in: a.resp.Body}
}

// answer is the body of an answer.
type answer struct {
	try *try
	in  io.ReadCloser
	end atomic.Pointer[error] // what ended it; nil before
}

// Read implements [io.Reader].
func (b *answer) Read(p []byte) (int, error) {
	if end := b.end.Load(); end != nil {
		return 0, *end
	}
	n, err := b.in.Read(p)
	if err == nil {
		return n, nil
	}
	if !b.end.CompareAndSwap(nil, &err) { // closed meanwhile
		return n, *b.end.Load()
	}
	if err == io.EOF {
		b.try.free = true
		b.try.finish(nil)
		return n, err
	}
	status := b.try.end.Status
	b.try.judge(err)
	b.try.end.Status = status // the client has seen it
	b.try.finish(err)
	return n, err
}

// Close implements [io.Closer], and ends a Read in progress. A body that is closed
// before its end costs the connection.
func (b *answer) Close() error {
	if b.end.CompareAndSwap(nil, &http.ErrBodyReadAfterClose) {
		b.try.end.LocalReset = true
		b.try.finish(http.ErrBodyReadAfterClose)
	}
	return nil
}
