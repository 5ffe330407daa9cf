package admin

import (
	"errors"
	"strings"
	"time"
)

// respond sends the answer to r, or the refusal if there is one.
func (s *Server) respond(t transport, r *Request, refused *refusal, foreign bool, start time.Time) (w *Response, err error) {
	w = s.response(t, r)
	defer r.settle() // also if the program's ResponseWriter panics
	if refused != nil {
		t.hangUp()
		err = w.finish(w.text(refused.status, refused.reason))
	} else {
		err = s.answer(w, r, foreign)
	}
	s.done(w, r, start, err)
	return w, err
}

// answer runs the checks and the handler for a well-framed request, and completes the
// response. foreign is set if the request names a second host that is not accepted.
func (s *Server) answer(w *Response, r *Request, foreign bool) error {
	s.metrics.running.Inc()
	defer s.metrics.running.Dec()
	return w.finish(s.route(w, r, foreign))
}

func (s *Server) route(w *Response, r *Request, foreign bool) error {
	if foreign || !r.withoutHost() && !s.hosts.accepts(r.host, r.listener) {
		s.metrics.host.Inc()
		return w.text(403, "this host name is not served; if it is yours, add it to admin.allowed_hosts (in Go: Config.AllowedHosts of package admin)\n")
	}
	if r.method != "GET" && r.method != "HEAD" {
		if header := s.origins.refuses(r); header != "" {
			s.metrics.csrf.Inc()
			s.auditRefusal(r, "foreign "+header)
			return w.text(403, "refused: the header "+header+" shows that this request comes from another web page; "+
				"if you trust it, add its origin to allowed_origins in the admin settings\n")
		}
	}
	if !s.auth.authenticate(r) {
		return s.challenge(w, r)
	}
	if !s.allowed(r.target) {
		return w.text(403, "request to path "+r.target+" not allowed\n")
	}
	e, mode := s.table.Load().byPath[r.path], s.modeOf(r)
	if need := e.needs(); r.principal.Role < need {
		return s.deny(w, r, need)
	}
	if asset := s.assets.Find(r.path); asset != nil && mode != ModeMetricsOnly {
		return w.asset(asset)
	}
	if e == nil || !e.in(mode) {
		if text := s.absent(r.path); text != "" && mode != ModeMetricsOnly {
			return w.text(404, text)
		}
		w.SetStatus(404)
		return w.all(typeText, s.appendHelp([]byte("invalid path. "), mode))
	}
	return s.dispatch(e, w, r)
}

// allowed reports whether the allow list, if any, permits a target.
func (s *Server) allowed(target string) bool {
	return len(s.cfg.AllowPaths) == 0 || s.cfg.AllowPaths.Match(target)
}

// modeOf returns the available part of the interface for r.
func (s *Server) modeOf(r *Request) Mode {
	if r.listener.metrics {
		return ModeMetricsOnly
	}
	return s.cfg.Mode
}

// in reports whether the endpoint exists in a mode.
func (e *Endpoint) in(mode Mode) bool { return mode != ModeMetricsOnly || e.metrics }

// dispatch runs the handler of a path if mode, method and parameters permit it.
func (s *Server) dispatch(e *Endpoint, w *Response, r *Request) error {
	r.endpoint = e
	if e.Mutates && s.cfg.Mode == ModeReadOnly {
		if r.method == "POST" || e.Put && r.method == "PUT" {
			s.auditRefusal(r, "read only")
		}
		return w.text(403, "this server is read only\n")
	}
	if e.Mutates && r.method != "POST" && !(e.Put && r.method == "PUT") {
		return s.refuseMethod(e, w, r)
	}
	if x, ok := w.transport.(*exchange); ok && x.conn.reserved && !e.critical {
		s.metrics.busy.Inc()
		w.SetHeader("retry-after", "1")
		return w.text(503, "too many connections\n")
	}
	if refused := r.parseParams(&s.limits); refused != "" {
		w.transport.hangUp()
		return w.text(400, refused)
	}
	unknown := e.unknownParams(r.query)
	if len(unknown) > 0 {
		s.metrics.unknown.Inc()
		if !e.Mutates {
			w.SetHeader("x-unknown-parameters", unknownField(unknown))
		}
	}
	if e.Heavy {
		if !s.heavy.enter(s.session()) {
			s.metrics.busy.Inc()
			w.SetHeader("retry-after", "1")
			return w.text(503, "too many large answers are being made\n")
		}
		r.After(s.heavy.leave)
	}
	if e.CPUBound {
		w.slots = s.slots
	}
	if origin := r.Header("origin"); origin != "" && !e.Mutates && s.readers.allows(origin) {
		w.SetHeader("access-control-allow-origin", strings.ToLower(origin))
		w.varyBy("origin")
	}
	if e.Mutates {
		return s.mutate(e, w, r, unknown)
	}
	return s.call(e, w, r)
}

// mutate runs the handler of a mutation and writes the audit record. Mutations that
// record changes run one at a time, so that the audit log has the changes in the
// order in which they took effect.
func (s *Server) mutate(e *Endpoint, w *Response, r *Request, unknown []string) error {
	if e.Serial {
		s.mutating.Lock()
		defer s.mutating.Unlock()
	}
	keys := r.query.Keys()
	err := s.attempt(e, w, r, unknown)
	status, reason := w.status, ""
	if err != nil {
		status, reason = 500, "failed"
		if e, ok := errors.AsType[*Error](err); ok {
			status = max(e.Status, 400)
		}
	}
	seq := s.audit.add(AuditEntry{Time: s.now(), Method: r.method, Path: e.Path, Keys: keys,
		Changes: r.changes, Peer: r.peer, Principal: r.principal, Status: status, Reason: reason,
		DryRun: r.dryRun, Undoes: r.undoes, Until: r.until(s.now()), edit: r.edit})
	if r.edit != nil {
		s.note(r.edit, seq, r.ttl)
		s.renew(r.edit.of, r.again)
	}
	if err == nil {
		w.backToPage(r, seq)
	}
	return err
}

// attempt runs the handler of a mutation, and notes which settings it changes.
func (s *Server) attempt(e *Endpoint, w *Response, r *Request, unknown []string) error {
	if len(unknown) > 0 {
		return e.refuseUnknown(unknown[0])
	}
	if err := e.manners(r); err != nil {
		return err
	}
	if r.dryRun {
		if err := s.call(e, w, r); err != nil {
			return err
		}
		return w.wouldChange(r)
	}
	if e.Settings == nil {
		return s.call(e, w, r)
	}
	if r.ttl > 0 && s.temporaries.full() {
		return &Error{Status: 503, Msg: "too many temporary settings\n"}
	}
	return r.tracked(e.Settings, r.query.Keys(), func() error { return s.call(e, w, r) })
}

// Access is the record of a request for the access log.
type Access struct {
	Time     time.Time // when the request was received
	Duration time.Duration
	Method   string
	Target   string // for mutations without parameter values
	Protocol string
	Host     string
	Peer     string
	// Principal is the identity of the client, if known.
	Principal Principal
	TLS       bool
	Status    int
	Received  int64 // bytes of the request's body
	Sent      int64 // bytes of the answer's body
	Err       error // why the response was cut, or nil
	// RequestHeader and ResponseHeader return header fields by name. They must not be
	// called after the callback returns. Credentials and cookies are hidden.
	RequestHeader, ResponseHeader func(name string) string
}

// done counts and logs a response. err is the result of finish.
func (s *Server) done(w *Response, r *Request, start time.Time, err error) {
	took := s.now().Sub(start)
	s.metrics.answered(w.status)
	if !w.endless {
		s.metrics.time.Record(uint64(max(took.Milliseconds(), 0)))
	}
	if err != nil && !errors.Is(err, errHeadDone) {
		s.logFailure(r, err)
	}
	if s.cfg.AccessLog == nil {
		return
	}
	cut := w.err
	if errors.Is(cut, errHeadDone) {
		cut = nil // the answer is complete
	}
	s.cfg.AccessLog(Access{
		Time: start, Duration: took, Method: r.method, Target: s.loggedTarget(r), Protocol: r.proto, Host: loggedHost(r.host),
		Peer: r.peer, Principal: r.principal, TLS: r.tls, Status: w.status, Received: int64(len(r.body)), Sent: w.sent, Err: cut,
		RequestHeader: r.loggedHeader, ResponseHeader: w.header,
	})
}

// loggedHeader is Header for logs.
func (r *Request) loggedHeader(name string) string {
	switch strings.ToLower(name) {
	case "authorization", "proxy-authorization", "cookie", "x-api-key":
		return ""
	}
	return r.Header(name)
}

// logFailure logs the error of a handler, except for disconnected clients.
func (s *Server) logFailure(r *Request, err error) {
	if e, ok := errors.AsType[*Error](err); ok && e.Err == nil || errors.Is(err, ErrGone) {
		return
	}
	path := ""
	if r.endpoint != nil {
		path = r.endpoint.Path
	}
	s.logger.Error("request failed", "path", path, "error", err)
}

// loggedTarget returns the target of r for logs. Parameters of mutations can be
// secret, even if the request was refused before it reached its endpoint, or has a
// mistake in its path.
func (s *Server) loggedTarget(r *Request) string {
	if e := s.table.Load().byPath[r.path]; e != nil && !e.Mutates {
		return r.target
	}
	_, text, ok := strings.Cut(r.target, "?")
	if !ok {
		return r.path
	}
	keys := strings.Split(text, "&")
	for i, piece := range keys {
		keys[i], _, _ = strings.Cut(piece, "=")
	}
	return r.path + "?" + strings.Join(keys, "&")
}

// loggedHost returns a host for logs without credentials in front of it. Such hosts
// are never served.
func loggedHost(host string) string { return host[strings.LastIndexByte(host, '@')+1:] }

// Request serves a request of the program itself, as if it had been sent to
// localhost. The whole response is kept in memory, so do not request streams.
func (s *Server) Request(method, pathAndQuery string, body []byte, header ...Field) *Reply {
	start := s.now()
	r := &Request{method: method, proto: "HTTP/1.1", host: "localhost", body: body, fields: header, closing: s.session(),
		principal: Principal{Role: RoleAdmin}}
	r.setTarget(pathAndQuery)
	reply := new(Reply)
	w, err := s.respond(memory{reply, s.session()}, r, s.checkOwn(r), false, start)
	if w.stage == stageDone && w.cut {
		reply.Err = err
	}
	return reply
}

// checkOwn is checkFrame for a request without a socket.
func (s *Server) checkOwn(r *Request) *refusal {
	if over(len(r.body), s.limits.BodyBytes) {
		return &refusal{413, "request body too large\n"}
	}
	if !strings.HasPrefix(r.target, "/") {
		return &refusal{400, "malformed request target\n"}
	}
	return checkFrame(r.method, r.proto, r.target, 0, r.fields, true, &s.limits)
}
