package sse

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// recorder is a client that keeps all output, and fails at a flush.
type recorder struct {
	strings.Builder
	err error
}

func (r *recorder) Flush() error { r.WriteString("|"); return r.err }

var errGone = errors.New("the client is gone")

// TestEnds has each way in which a stream ends.
func TestEnds(t *testing.T) {
	over := make(chan struct{})
	close(over)
	for _, tt := range []struct {
		name       string
		flush      error
		next, beat error
		closing    chan struct{}
		closed     chan struct{}
		want       error
		calls      int // of Next
	}{
		{name: "the client is gone before the header", flush: errGone, want: errGone},
		{name: "closing", closing: over},
		{name: "closed", closed: over},
		{name: "no more events", next: io.EOF, calls: 1},
		{name: "an event fails", next: errGone, want: errGone, calls: 1},
		{name: "a heartbeat fails", beat: errGone, want: errGone, calls: 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := &recorder{err: tt.flush}
			calls := 0
			s := Stream{
				Heartbeat: time.Minute, Closed: tt.closed,
				Next: func() (bool, <-chan struct{}, error) { calls++; return false, nil, tt.next },
				Beat: func() error { return tt.beat },
			}
			if err := s.Serve(w, tt.closing); !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
				t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
			}
			if calls != tt.calls || w.String() != "|" {
				t.Errorf("%s: %d calls, want %d; the client got %q", tt.name, calls, tt.calls, w)
			}
		})
	}
}

// TestHeartbeats come after a time without an event, and again after each such time.
func TestHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var got []string
		note := func(what string) { got = append(got, what+" "+time.Since(began).String()) }
		events := []bool{true, true, false, false, true, false, false, false}
		more := make(chan struct{}, 1)
		closing := make(chan struct{})
		s := Stream{
			Heartbeat: 10 * time.Second,
			Next: func() (bool, <-chan struct{}, error) {
				if len(events) == 0 {
					return false, more, io.EOF
				}
				sent := events[0]
				events = events[1:]
				if sent {
					note("event")
				}
				return sent, more, nil
			},
			Beat: func() error {
				note("beat")
				if len(got) == 3 {
					time.AfterFunc(4*time.Second, func() { more <- struct{}{} })
				}
				return nil
			},
		}
		if err := s.Serve(&recorder{}, closing); err != nil {
			t.Error(err)
		}
		want := "event 0s, event 0s, beat 10s, event 14s, beat 24s, beat 34s, beat 44s"
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("got  %s\nwant %s", text, want)
		}
	})
}

// TestClosedWhileItWaits ends a stream that has nothing to send.
func TestClosedWhileItWaits(t *testing.T) {
	for _, which := range []string{"closing", "closed"} {
		synctest.Test(t, func(t *testing.T) {
			closing, closed := make(chan struct{}), make(chan struct{})
			s := Stream{Heartbeat: time.Hour, Closed: closed,
				Next: func() (bool, <-chan struct{}, error) { return false, nil, nil },
				Beat: func() error { t.Error("a heartbeat"); return errGone },
			}
			end := closing
			if which == "closed" {
				end = closed
			}
			time.AfterFunc(time.Minute, func() { close(end) })
			if err := s.Serve(&recorder{}, closing); err != nil {
				t.Errorf("%s: %v", which, err)
			}
		})
	}
}
