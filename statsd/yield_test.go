package statsd

import (
	"bytes"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
)

// TestWorkersYieldWithinChunks runs another goroutine on the only processor while a
// worker applies a chunk that takes a few milliseconds.
func TestWorkersYieldWithinChunks(t *testing.T) {
	var known, made bytes.Buffer
	for known.Len() < 1<<20 {
		known.WriteString("hits.of.a.counter:1|c\n")
	}
	for i := range 10_000 {
		fmt.Fprintf(&made, "n%d:1|c\n", i)
	}
	for _, tt := range []struct {
		name  string
		lines []byte
		want  int64
	}{{"known", known.Bytes(), 14}, {"new", made.Bytes(), 60}} {
		t.Run(tt.name, func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			r := newRig(t, Config{Limits: Limits{NewPerSecond: -1}})
			var turns atomic.Int64
			end, ended := make(chan bool), make(chan bool)
			go func() {
				defer close(ended)
				for {
					select {
					case <-end:
						return
					default:
						turns.Add(1)
						runtime.Gosched()
					}
				}
			}()
			before := turns.Load()
			r.streamWorkers[0].chunk(r.l, tt.lines, source{})
			got := turns.Load() - before
			close(end)
			<-ended
			if got < tt.want {
				t.Errorf("others ran %d times during a chunk of %d bytes, want %d", got, len(tt.lines), tt.want)
			}
		})
	}
}

// TestYieldKeepsTheTap yields in the middle of a chunk: all lines are counted and
// tapped.
func TestYieldKeepsTheTap(t *testing.T) {
	tapped := 0
	r := newRig(t, Config{Tap: func() func(Tapped) { return func(Tapped) { tapped++ } }})
	const lines = 3 * fairShare / 6
	w := r.streamWorkers[0]
	w.chunk(r.l, bytes.Repeat([]byte("a:1|c\n"), lines), source{})
	if w.share > fairShare {
		t.Errorf("%d bytes after the last yield, more than a share", w.share)
	}
	if got := r.Scope().Counter("a").Value(); got != lines || tapped != lines {
		t.Errorf("%d lines were counted and %d tapped, want %d", got, tapped, lines)
	}
}

// TestWaitBeginsANewShare checks that a worker whose reader waited does not yield early.
func TestWaitBeginsANewShare(t *testing.T) {
	r := newRig(t, Config{})
	w := r.streamWorkers[0]
	for _, waited := range []bool{false, true} {
		w.share = 100
		so := &socket{batch: &batch{waited: waited}}
		w.batch(r.l, so, 0)
		if got := w.share == 0; got != waited {
			t.Errorf("waited %t: a new share %t", waited, got)
		}
	}
}
