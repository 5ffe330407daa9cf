package admin

import (
	"errors"
	"runtime/pprof"

	"github.com/statsd-admin/statsd-admin/server/profiler"
)

// profilerUsage is the response to invalid parameters of the profilers.
const profilerUsage = "?enable=<y|n>\n"

// parseEnable returns the value of the only parameter. It reports false for anything
// but exactly one enable=y or enable=n.
func parseEnable(q Query) (on, ok bool) {
	v := q.Value("enable")
	return v == "y", len(q.Keys()) == 1 && (v == "y" || v == "n")
}

func (s *Server) cpuProfiler(w *Response, r *Request) error {
	on, ok := parseEnable(r.query)
	if !ok {
		return badRequest(profilerUsage)
	}
	p := s.src.CPUProfiler
	if on {
		if p == nil {
			return &Error{Status: 500, Msg: "failure to start the profiler"}
		}
		started, err := p.Start()
		if errors.Is(err, profiler.ErrBusy) {
			return badRequest("the heap profiler is running, and both write to the same file\n")
		}
		if err != nil {
			return &Error{Status: 500, Msg: "failure to start the profiler", Err: err}
		}
		if !started {
			return w.text(200, "OK\nthe CPU profiler was already running\n")
		}
		return w.text(200, "OK\n")
	}
	if p != nil {
		if _, err := p.Stop(); err != nil {
			return &Error{Status: 500, Msg: "failure to write the profile\n", Err: err}
		}
	}
	return w.text(200, "OK\n")
}

func (s *Server) heapProfiler(w *Response, r *Request) error {
	p := s.src.HeapProfiler
	if p == nil {
		return &Error{Status: 501, Msg: "The current build does not support heap profiler"}
	}
	on, ok := parseEnable(r.query)
	switch {
	case !ok:
		return badRequest(profilerUsage)
	case on:
		started, err := p.Start()
		if errors.Is(err, profiler.ErrBusy) {
			return badRequest("Fail to start heap profiler: the CPU profiler is running, and both write to the same file")
		}
		if err != nil {
			return &Error{Status: 500, Msg: "Fail to start the heap profiler", Err: err}
		}
		if !started {
			return badRequest("Fail to start heap profiler: already started")
		}
		return w.text(200, "Starting heap profiler")
	}
	stopped, err := p.Stop()
	if err != nil {
		return &Error{Status: 500, Msg: "failure to write the profile\n", Err: err}
	}
	if !stopped {
		return badRequest("Fail to stop heap profiler: not started")
	}
	return w.text(200, "Heap profiler stopped and data written to "+p.Path()+".")
}

// heapDump serves a heap profile as of the last garbage collection, in pprof format.
func (s *Server) heapDump(w *Response, _ *Request) error {
	w.encodings = nil // the profile is compressed
	return pprof.Lookup("heap").WriteTo(w, 0)
}
