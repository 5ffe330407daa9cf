package admin

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/google/pprof/profile"
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
		var recording atomic.Bool
		rows = append(rows, Endpoint{Path: "/debug/pprof/" + name, Group: groupDebug, Help: "download the " + name + " profile of the runtime",
			Params: []Param{
				{Name: "debug", Help: "1 or 2: as text"}, {Name: "gc", Help: "with heap: collect garbage first", Kind: ParamFlag},
				{Name: "seconds", Help: "difference over this time, at most 600; not as text"},
			},
			Serve: func(w *Response, r *Request) error { return lookup(w, r, name, &recording) }})
	}
	for i := range rows {
		rows[i].Role, rows[i].Fixed = RoleAdmin, true
	}
	return rows
}

// lookup serves a runtime profile, as net/http/pprof does. The flag is set while a
// client waits for a difference.
func lookup(w *Response, r *Request, name string, recording *atomic.Bool) error {
	debug := 0
	if text := r.query.Value("debug"); text != "" {
		var err error
		if debug, err = strconv.Atoi(text); err != nil || debug < 0 {
			return badRequest("debug is not a number\n")
		}
	}
	take := func(to io.Writer) error {
		if name == "heap" && r.query.Has("gc") {
			runtime.GC()
		}
		return pprof.Lookup(name).WriteTo(to, debug)
	}
	if debug == 0 {
		w.SetType(typeBinary)
		w.encodings = nil // the profile is compressed
	}
	if r.query.Value("seconds") == "" {
		return take(w)
	}
	duration, err := recordingTime(r)
	if err != nil {
		return err
	}
	if debug != 0 {
		return badRequest("seconds is only for profiles without debug\n")
	}
	if !recording.CompareAndSwap(false, true) {
		return errRecording(nil)
	}
	defer recording.Store(false)
	var before, after bytes.Buffer
	ended := w.Endless() // it may take longer than other answers
	if err := take(&before); err != nil {
		return err
	}
	if err := waitRecording(r, duration, ended); err != nil {
		return err
	}
	if err := take(&after); err != nil {
		return err
	}
	delta, err := deltaProfile(before.Bytes(), after.Bytes())
	if err != nil {
		return err
	}
	return delta.Write(w)
}

// deltaProfile returns the difference between two readings of a runtime profile.
// Stacks without a change are left out.
func deltaProfile(before, after []byte) (*profile.Profile, error) {
	old, err := parseProfile(before)
	if err != nil {
		return nil, err
	}
	now, err := parseProfile(after)
	if err != nil {
		return nil, err
	}
	for _, s := range old.Sample {
		for i := range s.Value {
			s.Value[i] = -s.Value[i]
		}
	}
	delta, err := profile.Merge([]*profile.Profile{now, old})
	if err != nil {
		return nil, err
	}
	delta.TimeNanos, delta.DurationNanos = now.TimeNanos, now.TimeNanos-old.TimeNanos
	return delta, nil
}

// parseProfile parses a profile of package pprof. [profile.ParseData] would also read
// forms of the past, whose parsers are a large part of that package.
func parseProfile(zipped []byte) (*profile.Profile, error) {
	r, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	return profile.ParseUncompressed(data)
}

// Durations of a recording.
const (
	defaultRecording = 30 * time.Second
	maxRecording     = 10 * time.Minute
)

// recordingTime returns the requested length of a recording.
func recordingTime(r *Request) (time.Duration, error) {
	text := r.query.Value("seconds")
	if text == "" {
		return defaultRecording, nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n > 0) || n > maxRecording.Seconds() {
		return 0, badRequest(fmt.Sprintf("seconds is not a number in (0, %v]\n", maxRecording.Seconds()))
	}
	return time.Duration(n * float64(time.Second)), nil
}

// errRecording refuses a second recording.
func errRecording(err error) error {
	return &Error{Status: 500, Msg: "another recording is running\n", Err: err}
}

// waitRecording waits until a recording is complete. It fails if the client or the
// server ends first.
func waitRecording(r *Request, d time.Duration, ended <-chan struct{}) error {
	select {
	case <-time.After(d):
		return nil
	case <-ended:
		if isClosed(r.closing) {
			return errors.New("admin: the server is shutting down")
		}
		return ErrGone
	}
}

// record streams a recording of the requested length.
func (s *Server) record(w *Response, r *Request, start func(io.Writer) error, stop func()) error {
	duration, err := recordingTime(r)
	if err != nil {
		return err
	}
	w.SetType(typeBinary)
	w.encodings = nil
	ended := w.Endless() // it may take longer than other answers
	if err := start(w); err != nil {
		return errRecording(err)
	}
	defer stop()
	return waitRecording(r, duration, ended)
}
