package admin

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// TestBuffersAreNotShared sends many responses concurrently, each in chunks of a
// distinct word.
func TestBuffersAreNotShared(t *testing.T) {
	s := newServer(t, Config{})
	s.Handle(Endpoint{Path: "/pieces", Serve: func(w *Response, r *Request) error {
		for range 20 {
			if _, err := io.WriteString(w, r.Query().Value("word")); err != nil {
				return err
			}
			runtime.Gosched() // others go on with theirs
		}
		return nil
	}})
	var wg sync.WaitGroup
	for worker := range 32 {
		wg.Go(func() {
			for i := range 50 {
				word := fmt.Sprintf("<%d %d>", worker, i)
				r := s.Request("GET", "/pieces?word="+word, nil)
				if string(r.Body) != strings.Repeat(word, 20) {
					t.Errorf("the answer for %s is %.100q", word, r.Body)
				}
			}
		})
	}
	wg.Wait()
}

// TestLargeAnswersAreHeavy lists the paths with responses that grow with the server's
// contents. They go through the gate.
func TestLargeAnswersAreHeavy(t *testing.T) {
	s := newServer(t, Config{Sources: newWorld().sources()})
	for _, path := range []string{"/stats", "/stats/metrics", "/stats/prometheus", "/config_dump", "/clusters", "/heap_dump"} {
		if e := s.table.Load().byPath[path]; e == nil || !e.Heavy {
			t.Errorf("%s does not go through the gate", path)
		}
	}
}
