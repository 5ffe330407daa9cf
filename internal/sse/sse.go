// Package sse serves streams of server-sent events and the heartbeats between them.
//
//	err := sse.Stream{Heartbeat: 15 * time.Second, Next: next, Beat: beat}.Serve(w, closing)
package sse

import (
	"errors"
	"io"
	"time"
)

// Writer takes the bytes of a stream.
type Writer interface {
	io.Writer
	// Flush sends the bytes written so far.
	Flush() error
}

// Stream is the stream of one client.
type Stream struct {
	// Heartbeat is the time without an event after which Beat is called.
	Heartbeat time.Duration
	// Next sends the next event if one is due. Otherwise more becomes readable when one
	// can be. io.EOF ends the stream without an error.
	Next func() (sent bool, more <-chan struct{}, err error)
	// Beat sends a heartbeat.
	Beat func() error
	// Closed, like the closing of Serve, ends the stream.
	Closed <-chan struct{}
}

// Serve sends the header of the response, then events and heartbeats, until a channel is
// closed or the client is gone.
func (s Stream) Serve(w Writer, closing <-chan struct{}) error {
	if err := w.Flush(); err != nil {
		return err
	}
	beat := time.NewTimer(s.Heartbeat)
	for !closed(closing) && !closed(s.Closed) {
		sent, more, err := s.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case sent:
			beat.Reset(s.Heartbeat)
			continue // another event may be due
		}
		select {
		case <-more:
		case <-beat.C:
			if err := s.Beat(); err != nil {
				return err
			}
			beat.Reset(s.Heartbeat)
		case <-closing:
		case <-s.Closed:
		}
	}
	return nil
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
