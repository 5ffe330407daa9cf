package admin

import (
	"fmt"
	"sync"
	"time"
)

// panicLog records the times of handler panics.
type panicLog struct {
	mu     sync.Mutex
	recent map[string][]time.Time
	off    map[string]bool
}

// A handler that panics this often within this time is disabled.
const (
	panicLimit  = 3
	panicWindow = time.Minute
)

// note records a panic of the handler of path and reports whether to disable the
// handler.
func (p *panicLog) note(path string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.recent == nil {
		p.recent, p.off = make(map[string][]time.Time), make(map[string]bool)
	}
	list := p.recent[path]
	for len(list) > 0 && now.Sub(list[0]) >= panicWindow {
		list = list[1:]
	}
	list = append(list, now)
	p.recent[path] = list
	if len(list) < panicLimit || p.off[path] {
		return false
	}
	p.off[path] = true
	return true
}

func (p *panicLog) disabled(path string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.off[path]
}

// call runs the handler of an endpoint. A panic becomes an error. After repeated
// panics within a minute the endpoint answers with 500 until the server restarts,
// except for /ready, /live and the stats.
func (s *Server) call(e *Endpoint, w *Response, r *Request) (err error) {
	if !e.neverDisabled && s.panics.disabled(e.Path) {
		return &Error{Status: 500, Msg: "this endpoint failed repeatedly and is switched off until the server is restarted\n"}
	}
	if !s.guard.Run(e.Path, func() { err = e.Serve(w, r) }) {
		err = fmt.Errorf("admin: handler of %s panicked", e.Path)
		if s.panics.note(e.Path, s.now()) && !e.neverDisabled {
			s.logger.Error("endpoint switched off after repeated panics", "path", e.Path)
		}
	}
	return err
}
