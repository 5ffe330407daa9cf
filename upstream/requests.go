package upstream

import (
	"maps"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/oneline"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// OriginalDstHeader returns the name of the header whose first value belongs in
// DestinationHeader of a pick's context. It is empty if no header may say where
// requests to the cluster go.
func (c *Cluster) OriginalDstHeader() string {
	o := &c.config.LB.OriginalDst
	switch {
	case c.original == nil || !o.UseHTTPHeader:
		return ""
	case o.HeaderName != "":
		return o.HeaderName
	}
	return "x-" + c.env.product + "-original-dst-host"
}

// ConnStarted notes that a pool begins to connect to h.
func (c *Cluster) ConnStarted(h *host.Host) {
	c.stats.CxTotal.Inc()
	c.stats.CxActive.Inc()
	h.Stats.CxTotal.Inc()
	h.Stats.CxActive.Inc()
}

// ConnEstablished notes that a connection to h is made, and how long that took.
func (c *Cluster) ConnEstablished(h *host.Host, took time.Duration) {
	c.stats.CxConnectMS.Record(uint64(max(took.Milliseconds(), 0)))
	h.ReportResult(host.ConnectSuccess, 0)
}

// ConnFailed notes that a started connection to h was not made. It is closed
// then.
func (c *Cluster) ConnFailed(h *host.Host, timeout bool) {
	c.countConnFailed(h)
	if timeout {
		c.stats.CxConnectTimeout.Inc()
		h.ReportResult(host.ConnectTimeout, 0)
		return
	}
	h.ReportResult(host.ConnectFailed, 0)
}

// countConnFailed counts a connection that was not made. It says nothing of the host.
func (c *Cluster) countConnFailed(h *host.Host) {
	c.stats.CxConnectFail.Inc()
	h.Stats.CxConnectFail.Inc()
	c.stats.CxActive.Dec()
	h.Stats.CxActive.Dec()
}

// ConnEnd is how an established connection ended.
type ConnEnd struct {
	Local          bool // closed by this side
	ActiveRequests int  // in flight when it ended
	Requests       int  // served in all
	Lived          time.Duration
}

// ConnClosed notes the end of an established connection to h.
func (c *Cluster) ConnClosed(h *host.Host, e ConnEnd) {
	s := c.stats
	defer h.Stats.CxActive.Dec()
	defer s.CxActive.Dec() // who sees none active sees all of them counted
	s.CxLengthMS.Record(uint64(max(e.Lived.Milliseconds(), 0)))
	s.RqPerCx.Record(uint64(max(e.Requests, 0)))
	s.CxDestroy.Inc()
	if e.ActiveRequests > 0 {
		s.CxDestroyWithActiveRq.Inc()
	}
	side, withRq := s.CxDestroyRemote, s.CxDestroyRemoteWithActiveRq
	if e.Local {
		side, withRq = s.CxDestroyLocal, s.CxDestroyLocalWithActiveRq
	}
	side.Inc()
	if e.ActiveRequests > 0 {
		withRq.Inc()
	}
}

// RequestStarted notes that a request was attached to a connection to h. Each
// must be followed by one [Cluster.RequestFinished].
func (c *Cluster) RequestStarted(h *host.Host) {
	c.stats.RqTotal.Inc()
	c.stats.RqActive.Inc()
	h.Stats.RqTotal.Inc()
	h.Stats.RqActive.Inc()
}

// Origin says where a request came from.
type Origin uint8

// The origins.
const (
	UnknownOrigin Origin = iota
	InternalOrigin
	ExternalOrigin
)

// RequestEnd is what became of a request.
type RequestEnd struct {
	// Status is the HTTP status that is counted, 0 if there was no answer.
	Status int
	// Failed tells that a request with a good status failed all the same, as
	// gRPC requests do.
	Failed  bool
	Took    time.Duration
	Origin  Origin
	Canary  bool // the answer says that it comes from a canary
	Retried bool // the answer leads to a retry, so it is not the final one

	// Why there was no answer of the host: at most one of these.
	Timeout        bool // the global timeout
	PerTryTimeout  bool
	RemoteReset    bool
	LocalReset     bool
	ConnectionLost bool // the connection failed under the request
}

// RequestFinished notes the end of a request to h: it keeps all derived
// statistics of cluster and host consistent and tells the outlier detector.
func (c *Cluster) RequestFinished(h *host.Host, e RequestEnd) {
	s := c.stats
	s.RqActive.Dec()
	h.Stats.RqActive.Dec()
	answered := !(e.Timeout || e.PerTryTimeout || e.RemoteReset || e.LocalReset || e.ConnectionLost)
	switch {
	case e.Timeout:
		s.RqTimeout.Inc()
		h.Stats.RqTimeout.Inc()
		h.ReportResult(host.RequestTimeout, e.Status)
	case e.PerTryTimeout:
		s.RqPerTryTimeout.Inc()
		h.Stats.RqTimeout.Inc()
		h.ReportResult(host.RequestTimeout, e.Status)
	case e.RemoteReset:
		s.RqRxReset.Inc()
		h.ReportResult(host.RequestFailed, e.Status)
	case e.LocalReset:
		s.RqTxReset.Inc()
	case e.ConnectionLost:
		h.ReportResult(host.ConnectFailed, e.Status)
	default:
		h.ReportCode(e.Status)
	}
	switch {
	case answered && !e.Failed && e.Status < 500:
		h.Stats.RqSuccess.Inc()
	case !e.LocalReset:
		h.Stats.RqError.Inc()
	}
	c.countAnswer(h, &e, true)
}

// RequestRefused notes a request that was never attached to a connection: there
// was no host for it, which is then nil, or none could be connected to, or a
// circuit breaker was in the way. Of e only what is said of the answer counts.
func (c *Cluster) RequestRefused(h *host.Host, e RequestEnd) {
	if h != nil {
		h.Stats.RqError.Inc()
	}
	c.countAnswer(h, &e, false)
}

// countAnswer moves the statistics by status. h is nil if no host was found.
func (c *Cluster) countAnswer(h *host.Host, e *RequestEnd, timed bool) {
	if e.Status == 0 {
		return
	}
	if e.Retried {
		c.answers.get(&c.answers.retry, c.scope, "retry.").count(e.Status, true)
		return
	}
	ms := uint64(max(e.Took.Milliseconds(), 0))
	note := func(g *answerGroup, completed bool) {
		g.count(e.Status, completed)
		if timed {
			g.time().Record(ms)
		}
	}
	note(c.answers.get(&c.answers.plain, c.scope, ""), true)
	if e.Canary || h != nil && h.Canary() {
		note(c.answers.get(&c.answers.canary, c.scope, "canary."), true)
	}
	switch e.Origin {
	case InternalOrigin:
		note(c.answers.get(&c.answers.internal, c.scope, "internal."), true)
	case ExternalOrigin:
		note(c.answers.get(&c.answers.external, c.scope, "external."), true)
	}
	if h == nil {
		return
	}
	if from, to := c.env.local.Zone, h.Locality().Zone; from != "" && to != "" {
		note(c.answers.zone(c.scope, from, to), false)
	}
}

// TimeoutBudget records how much of the global timeout a request used, if that
// is tracked. A timeout of 0 is infinite.
func (c *Cluster) TimeoutBudget(elapsed, timeout time.Duration) {
	recordBudget(c.stats.TimeoutBudget, elapsed, timeout)
}

// TimeoutBudgetPerTry is like [Cluster.TimeoutBudget] for the timeout of one
// attempt.
func (c *Cluster) TimeoutBudgetPerTry(elapsed, timeout time.Duration) {
	recordBudget(c.stats.TimeoutBudgetPerTry, elapsed, timeout)
}

func recordBudget(h *store.Histogram, elapsed, timeout time.Duration) {
	if h == nil {
		return
	}
	used := uint64(0)
	if ms := timeout.Milliseconds(); ms > 0 {
		used = uint64(max(elapsed.Milliseconds(), 0)) * 100 / uint64(ms)
	}
	h.Record(used)
}

// answers are the statistics by status, made when they are first needed.
type answers struct {
	plain, canary, internal, external, retry atomic.Pointer[answerGroup]

	zones atomic.Pointer[map[string]*answerGroup] // by zone of the host; replaced, never changed
	mu    sync.Mutex                              // held by those who replace zones
}

func (a *answers) get(p *atomic.Pointer[answerGroup], sc *store.Scope, prefix string) *answerGroup {
	if g := p.Load(); g != nil {
		return g
	}
	p.CompareAndSwap(nil, &answerGroup{scope: sc, prefix: prefix})
	return p.Load()
}

func (a *answers) zone(sc *store.Scope, from, to string) *answerGroup {
	if m := a.zones.Load(); m != nil {
		if g := (*m)[to]; g != nil {
			return g
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	m := map[string]*answerGroup{}
	if old := a.zones.Load(); old != nil {
		m = maps.Clone(*old)
	}
	if m[to] == nil {
		m[to] = &answerGroup{scope: sc, prefix: "zone." + oneline.Clean(from) + "." + oneline.Clean(to) + "."}
	}
	a.zones.Store(&m)
	return m[to]
}

// answerGroup is the statistics by status under one prefix.
type answerGroup struct {
	scope     *store.Scope
	prefix    string
	completed atomic.Pointer[store.Counter]
	took      atomic.Pointer[store.Histogram]
	classes   [5]atomic.Pointer[answerClass] // 1xx to 5xx
}

type answerClass struct {
	all   *store.Counter
	codes [100]atomic.Pointer[store.Counter]
}

func (g *answerGroup) counter(p *atomic.Pointer[store.Counter], name string) *store.Counter {
	if c := p.Load(); c != nil {
		return c
	}
	p.Store(g.scope.Counter(g.prefix + name)) // one name is one counter, whoever asks first
	return p.Load()
}

func (g *answerGroup) time() *store.Histogram {
	if h := g.took.Load(); h != nil {
		return h
	}
	g.took.Store(g.scope.Histogram(g.prefix+"upstream_rq_time", store.Milliseconds))
	return g.took.Load()
}

// count counts a status. Statuses outside 100 to 599 have no class.
func (g *answerGroup) count(status int, completed bool) {
	if completed {
		if c := g.completed.Load(); c != nil {
			c.Inc()
		} else {
			g.counter(&g.completed, "upstream_rq_completed").Inc()
		}
	}
	if status < 100 || status > 599 {
		return
	}
	p := &g.classes[status/100-1]
	cl := p.Load()
	if cl == nil {
		p.CompareAndSwap(nil, &answerClass{all: g.scope.Counter(g.prefix + "upstream_rq_" + strconv.Itoa(status/100) + "xx")})
		cl = p.Load()
	}
	cl.all.Inc()
	if c := cl.codes[status%100].Load(); c != nil {
		c.Inc()
		return
	}
	g.counter(&cl.codes[status%100], "upstream_rq_"+strconv.Itoa(status)).Inc()
}
