package admin

import (
	"sync"
	"time"
)

// wrongMethods remembers which requests with a wrong method were logged. The
// zero value is ready to use.
type wrongMethods struct {
	mu     sync.Mutex
	byPath map[string]wrongMethod
}

type wrongMethod struct {
	logged     time.Time
	suppressed uint64 // since then
}

// note counts a request to a path and reports whether to log it, which is so
// once a second, and how many were left out since the last log line.
func (m *wrongMethods) note(path string, now time.Time) (suppressed uint64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last, known := m.byPath[path]
	if known && now.Sub(last.logged) < time.Second {
		last.suppressed++
		m.byPath[path] = last
		return 0, false
	}
	if m.byPath == nil {
		m.byPath = make(map[string]wrongMethod)
	}
	m.byPath[path] = wrongMethod{logged: now}
	return last.suppressed, true
}

// refuseMethod answers a mutation that was not sent as POST. Any client that
// reaches the server can send them, so each path is logged once per second.
func (s *Server) refuseMethod(e *Endpoint, w *Response, r *Request) error {
	if suppressed, ok := s.badMethods.note(e.Path, s.now()); ok {
		var args []any
		if suppressed > 0 {
			args = []any{"suppressed", suppressed}
		}
		s.logger.Error(`admin path "`+e.Path+`" mutates state, method=`+r.method+` rather than POST`, args...)
	}
	status := 405
	if r.method == "GET" || r.method == "HEAD" {
		status = 400
	}
	w.SetHeader("allow", "POST")
	return w.text(status, "Method "+r.method+" not allowed, POST required.")
}
