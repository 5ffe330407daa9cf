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
// DestinationHeader of a pick's context, or "" if headers do not select hosts
// of the cluster.
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

// AnswerHeaders returns the names, in canonical form, of two headers of answers: a host
// sends one to be marked by [Cluster.ReportImmediateFailure], and the other with the
// value "true" as a canary.
func (c *Cluster) AnswerHeaders() (immediateFailure, canary string) {
	return c.env.immediateFailure, c.env.canary
}

// ConnStarted records that a pool starts to connect to h. Each call must be
// followed by a call of [Cluster.ConnFailed] or [Cluster.ConnClosed].
func (c *Cluster) ConnStarted(h *host.Host) {
	c.hold()
	c.stats.CxTotal.Inc()
	c.stats.CxActive.Inc()
	h.Stats.CxTotal.Inc()
	h.Stats.CxActive.Inc()
}

// ConnEstablished records that a connection to h was established, and how long
// that took.
func (c *Cluster) ConnEstablished(h *host.Host, took time.Duration) {
	c.stats.CxConnectMS.Record(uint64(max(took.Milliseconds(), 0)))
	h.ReportResult(host.ConnectSuccess, 0)
}

// ConnFailed records that a started connection to h was not established and is
// closed.
func (c *Cluster) ConnFailed(h *host.Host, timeout bool) {
	if timeout {
		c.stats.CxConnectTimeout.Inc()
	}
	c.countConnFailed(h, timeout)
	if timeout {
		h.ReportResult(host.ConnectTimeout, 0)
		return
	}
	h.ReportResult(host.ConnectFailed, 0)
}

// countConnFailed counts a connection that was not made, without a verdict on the
// host. local reports whether this side gave up.
func (c *Cluster) countConnFailed(h *host.Host, local bool) {
	c.stats.CxConnectFail.Inc()
	h.Stats.CxConnectFail.Inc()
	c.countDestroyed(h, local, false)
}

// countDestroyed counts the end of a connection. The gauges go last, so that a
// reader that sees no active connections sees all of them destroyed.
func (c *Cluster) countDestroyed(h *host.Host, local, active bool) {
	s := c.stats
	side, withRq := s.CxDestroyRemote, s.CxDestroyRemoteWithActiveRq
	if local {
		side, withRq = s.CxDestroyLocal, s.CxDestroyLocalWithActiveRq
	}
	s.CxDestroy.Inc()
	side.Inc()
	if active {
		s.CxDestroyWithActiveRq.Inc()
		withRq.Inc()
	}
	s.CxActive.Dec()
	h.Stats.CxActive.Dec()
	c.drop()
}

// ConnEnd describes how an established connection ended.
type ConnEnd struct {
	Local          bool // closed by this side
	ActiveRequests int  // in flight when it ended
	Requests       int  // served in all
	Lived          time.Duration
}

// ConnClosed records the end of an established connection to h.
func (c *Cluster) ConnClosed(h *host.Host, e ConnEnd) {
	c.stats.CxLengthMS.Record(uint64(max(e.Lived.Milliseconds(), 0)))
	c.stats.RqPerCx.Record(uint64(max(e.Requests, 0)))
	c.countDestroyed(h, e.Local, e.ActiveRequests > 0)
}

// RequestStarted records that a request was attached to a connection to h. Each
// call must be followed by a call of [Cluster.RequestFinished].
func (c *Cluster) RequestStarted(h *host.Host) {
	c.hold()
	c.stats.RqTotal.Inc()
	c.stats.RqActive.Inc()
	h.Stats.RqTotal.Inc()
	h.Stats.RqActive.Inc()
}

// Origin is the kind of client that sent a request.
type Origin uint8

// The origins.
const (
	UnknownOrigin Origin = iota
	InternalOrigin
	ExternalOrigin
)

// RequestEnd describes how a request ended.
type RequestEnd struct {
	// Status is the HTTP status to count, 0 without an answer.
	Status int
	// Failed marks a request with a good HTTP status as failed, for example by its
	// gRPC status.
	Failed  bool
	Took    time.Duration
	Origin  Origin
	Canary  bool // the answer comes from a canary
	Retried bool // the answer is not final, a retry follows

	// The reason why the host gave no answer, or no valid one. At most one is set.
	Timeout        bool // the global timeout
	PerTryTimeout  bool
	RemoteReset    bool
	LocalReset     bool
	ConnectionLost bool // the connection failed under the request
	// BadAnswer is set if the host violated the protocol: its answer is not
	// HTTP, or exceeds a limit on headers or size. It counts as a 502 of the
	// host.
	BadAnswer bool
}

// RequestFinished records the end of a request to h. It keeps all derived
// statistics of cluster and host consistent and notifies the outlier detector.
func (c *Cluster) RequestFinished(h *host.Host, e RequestEnd) {
	defer c.drop()
	s := c.stats
	s.RqActive.Dec()
	h.Stats.RqActive.Dec()
	failure := e.Status // a good status is not that of the failure
	if failure < 500 {
		failure = 0
	}
	answered := !(e.Timeout || e.PerTryTimeout || e.RemoteReset || e.LocalReset || e.ConnectionLost || e.BadAnswer)
	switch {
	case e.Timeout:
		s.RqTimeout.Inc()
		h.Stats.RqTimeout.Inc()
		h.ReportResult(host.RequestTimeout, failure)
	case e.PerTryTimeout:
		s.RqPerTryTimeout.Inc()
		h.Stats.RqTimeout.Inc()
		h.ReportResult(host.RequestTimeout, failure)
	case e.RemoteReset:
		s.RqRxReset.Inc()
		h.ReportResult(host.RequestFailed, failure)
	case e.LocalReset:
		s.RqTxReset.Inc()
	case e.ConnectionLost:
		h.ReportResult(host.ConnectFailed, failure)
	case e.BadAnswer:
		s.CxProtocolError.Inc()
		h.ReportResult(host.RequestFailed, 502)
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

// RequestRefused records a request that was never attached to a connection: no host
// was available, in which case h is nil, connecting failed, or a circuit breaker was
// open. It uses only the fields of e about the answer.
func (c *Cluster) RequestRefused(h *host.Host, e RequestEnd) {
	if h != nil {
		h.Stats.RqError.Inc()
	}
	c.countAnswer(h, &e, false)
}

// countAnswer updates the statistics by status. h is nil if no host was found.
func (c *Cluster) countAnswer(h *host.Host, e *RequestEnd, timed bool) {
	if e.Status == 0 {
		return
	}
	if e.Retried {
		c.answers.get(&c.answers.retry, "retry.").count(e.Status, true)
		return
	}
	ms := uint64(max(e.Took.Milliseconds(), 0))
	note := func(g *answerGroup, completed bool) {
		g.count(e.Status, completed)
		if timed {
			g.time().Record(ms)
		}
	}
	note(c.answers.get(&c.answers.plain, ""), true)
	if e.Canary || h != nil && h.Canary() {
		note(c.answers.get(&c.answers.canary, "canary."), true)
	}
	switch e.Origin {
	case InternalOrigin:
		note(c.answers.get(&c.answers.internal, "internal."), true)
	case ExternalOrigin:
		note(c.answers.get(&c.answers.external, "external."), true)
	}
	if h == nil {
		return
	}
	if from, to := c.env.local.Zone, h.Locality().Zone; from != "" && to != "" {
		note(c.answers.zone(from, to), false)
	}
}

// TimeoutBudget records how much of the global timeout a request used, if timeout
// budgets are tracked. A timeout of 0 is infinite.
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

// answers are the statistics by status, created when they are first needed. All
// versions of the clusters with one stat name share them, so an update loses none.
type answers struct {
	scope *store.Scope
	users int // versions; guarded by the registry's mu

	plain, canary, internal, external, retry atomic.Pointer[answerGroup]

	zones atomic.Pointer[map[string]*answerGroup] // by zone of the host; replaced, never changed
	mu    sync.Mutex                              // held while zones is replaced
}

// answerRegistry holds the shared answers by stat name.
type answerRegistry struct {
	mu     sync.Mutex
	byName map[string]*answers
}

// acquire returns the answers of a stat name for one version of a cluster.
func (r *answerRegistry) acquire(root *store.Scope, name string) *answers {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.byName[name]
	if a == nil {
		if r.byName == nil {
			r.byName = make(map[string]*answers)
		}
		a = &answers{scope: root.Scope("cluster." + name)}
		r.byName[name] = a
	}
	a.users++
	return a
}

// release ends the use by one version. The last one closes the scope.
func (r *answerRegistry) release(name string, a *answers) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.users--; a.users == 0 {
		delete(r.byName, name)
		a.scope.Close()
	}
}

func (a *answers) get(p *atomic.Pointer[answerGroup], prefix string) *answerGroup {
	if g := p.Load(); g != nil {
		return g
	}
	p.CompareAndSwap(nil, &answerGroup{scope: a.scope, prefix: prefix})
	return p.Load()
}

func (a *answers) zone(from, to string) *answerGroup {
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
		m[to] = &answerGroup{scope: a.scope, prefix: "zone." + oneline.Clean(from) + "." + oneline.Clean(to) + "."}
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
	p.Store(g.scope.Counter(g.prefix + name)) // equal names share a counter
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
		g.counter(&g.completed, "upstream_rq_completed").Inc()
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
