package admin

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"time"
)

// debugProfiles are the runtime profiles with an endpoint.
var debugProfiles = [...]string{"allocs", "block", "goroutine", "heap", "mutex", "threadcreate"}

// debugRows returns the endpoints of Config.DebugEndpoints.
func (s *Server) debugRows() []Endpoint {
	if !s.cfg.DebugEndpoints {
		return nil
	}
	seconds := []Param{{Name: "seconds", Help: "seconds to record; default 30, at most 600"}}
	rows := []Endpoint{
		{Path: "/debug/pprof/profile", Group: groupDebug, Help: "record and download a CPU profile", Params: seconds,
			Serve: func(w *Response, r *Request) error {
				return s.record(w, r, pprof.StartCPUProfile, pprof.StopCPUProfile)
			}},
		{Path: "/debug/pprof/trace", Group: groupDebug, Help: "record and download an execution trace", Params: seconds,
			Serve: func(w *Response, r *Request) error { return s.record(w, r, trace.Start, trace.Stop) }},
	}
	for _, name := range debugProfiles {
		rows = append(rows, Endpoint{Path: "/debug/pprof/" + name, Group: groupDebug, Help: "download the " + name + " profile of the runtime",
			Params: []Param{{Name: "debug", Help: "1 or 2: as text"}, {Name: "gc", Help: "with heap: collect garbage first", Kind: ParamFlag}},
			Serve:  func(w *Response, r *Request) error { return lookup(w, r, name) }})
	}
	for i := range rows {
		rows[i].Role, rows[i].Fixed = RoleAdmin, true
	}
	return rows
}

// lookup serves a runtime profile, as net/http/pprof does.
func lookup(w *Response, r *Request, name string) error {
	if r.query.Has("seconds") {
		return badRequest("seconds is not supported: take two profiles and compare them with go tool pprof -diff_base\n")
	}
	debug := 0
	if text := r.query.Value("debug"); text != "" {
		var err error
		if debug, err = strconv.Atoi(text); err != nil || debug < 0 {
			return badRequest("debug is not a number\n")
		}
	}
	if name == "heap" && r.query.Has("gc") {
		runtime.GC()
	}
	if debug == 0 {
		w.SetType(typeBinary)
		w.encodings = nil // the profile is compressed
	}
	return pprof.Lookup(name).WriteTo(w, debug)
}

// Durations of a recording.
const (
	defaultRecording = 30 * time.Second
	maxRecording     = 10 * time.Minute
)

// record streams a recording of the requested length.
func (s *Server) record(w *Response, r *Request, start func(io.Writer) error, stop func()) error {
	duration := defaultRecording
	if text := r.query.Value("seconds"); text != "" {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || !(n > 0) || n > maxRecording.Seconds() {
			return badRequest(fmt.Sprintf("seconds is not a number in (0, %v]\n", maxRecording.Seconds()))
		}
		duration = time.Duration(n * float64(time.Second))
	}
	w.SetType(typeBinary)
	w.encodings = nil
	ended := w.Endless() // it may take longer than other answers
	if err := start(w); err != nil {
		return &Error{Status: 500, Msg: "another recording is running\n", Err: err}
	}
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
		stop()
		return nil
	case <-ended:
		stop()
		if isClosed(r.closing) {
			return errors.New("admin: the server is shutting down")
		}
		return ErrGone
	}
}
