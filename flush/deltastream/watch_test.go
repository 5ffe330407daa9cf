package deltastream

import (
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/statsd-admin/statsd-admin/store"
)

// TestWatchIsReleased: when the last client has left, the store keeps nothing of the
// watch.
func TestWatchIsReleased(t *testing.T) {
	st := store.New(store.Options{})
	for name, end := range map[string]func(*Stream){"after a linger": func(s *Stream) { s.Tick() }, "at the end": (*Stream).end} {
		s := New(Config{Store: st, Linger: time.Nanosecond})
		c, err := s.Subscribe(Request{})
		if err != nil {
			t.Fatal(err)
		}
		watch := weak.Make(s.watch)
		c.Close()
		end(s)
		runtime.GC()
		if watch.Value() != nil {
			t.Errorf("%s: the store still has the watch", name)
		}
	}
	runtime.KeepAlive(st)
}
