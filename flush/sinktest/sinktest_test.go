package sinktest_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/statsd-admin/statsd-admin/flush/sinktest"
	"github.com/statsd-admin/statsd-admin/store"
)

// sum is a sink that adds up the increments of a counter. Its fields replace parts of it.
type sum struct {
	total   atomic.Uint64
	name    func() string
	consume func(snap *store.Snapshot, requests uint64) (uint64, error) // returns what is added
}

func (s *sum) Name() string { return s.name() }

func (s *sum) Flush(snap *store.Snapshot) error {
	n, err := s.consume(snap, changes(snap)[requests])
	s.total.Add(n)
	return err
}

const requests = "sinktest.requests"

// changes returns the increments of the counters.
func changes(snap *store.Snapshot) map[string]uint64 {
	found := map[string]uint64{}
	snap.CounterChanges(func(c *store.Cursor, delta uint64) bool {
		found[c.Name()] = delta
		return true
	})
	return found
}

// find returns whether the store still has a counter, and its value.
func find(snap *store.Snapshot, name string) (uint64, bool) {
	v := snap.View().Store().View()
	defer v.Close()
	c, ok := v.Find(name)
	if !ok {
		return 0, false
	}
	return c.Uint(), true
}

// faults are ways to break the contract, each with the test that must notice it.
var faults = map[string]struct {
	noticed string
	put     func(*sum)
}{
	"none":    {"", func(*sum) {}},
	"unnamed": {"name", func(s *sum) { s.name = func() string { return "" } }},
	"renamed": {"name", func(s *sum) {
		var calls atomic.Uint64
		s.name = func() string { return fmt.Sprint("sum", calls.Add(1)) }
	}},
	"refuses-empty": {"empty", func(s *sum) {
		s.consume = func(snap *store.Snapshot, n uint64) (uint64, error) {
			if len(changes(snap)) == 0 {
				return 0, errors.New("no stats")
			}
			return n, nil
		}
	}},
	"loses": {"exact", func(s *sum) {
		s.consume = func(_ *store.Snapshot, n uint64) (uint64, error) { return n - min(n, 1), nil }
	}},
	"repeats": {"exact", func(s *sum) {
		s.consume = func(_ *store.Snapshot, n uint64) (uint64, error) { return 2 * n, nil }
	}},
	"refuses-names": {"hostile", func(s *sum) {
		s.consume = func(snap *store.Snapshot, n uint64) (uint64, error) {
			for name := range changes(snap) {
				if !utf8.ValidString(name) {
					return n, fmt.Errorf("name %q", name)
				}
			}
			return n, nil
		}
	}},
	"refuses-texts": {"hostile", func(s *sum) {
		s.consume = func(snap *store.Snapshot, n uint64) (uint64, error) {
			snap.Texts(func(_ *store.Cursor, value string) bool {
				if !utf8.ValidString(value) {
					n = 0
				}
				return true
			})
			return n, nil
		}
	}},
	"asks-the-store": {"last-delta", func(s *sum) {
		s.consume = func(snap *store.Snapshot, n uint64) (uint64, error) {
			if _, ok := find(snap, requests); !ok {
				return 0, nil
			}
			return n, nil
		}
	}},
	"drops-when-many": {"ended", func(s *sum) {
		s.consume = func(snap *store.Snapshot, n uint64) (uint64, error) {
			if len(changes(snap)) > 1000 {
				return 0, nil
			}
			return n, nil
		}
	}},
	"sends-shown-values": {"reset", func(s *sum) {
		var before uint64
		s.consume = func(snap *store.Snapshot, _ uint64) (uint64, error) {
			shown, _ := find(snap, requests)
			more := shown - min(before, shown)
			before = shown
			return more, nil
		}
	}},
	"keeps-views": {"empty", func(s *sum) {
		s.consume = func(snap *store.Snapshot, n uint64) (uint64, error) {
			snap.View().Store().View()
			return n, nil
		}
	}},
}

// TestFaultySinksFail: a sink that breaks the contract passes the tests. The tests of a
// faulty sink fail, so they run in a program of their own.
func TestFaultySinksFail(t *testing.T) {
	const chosen = "SINKTEST_FAULT"
	if name, ok := os.LookupEnv(chosen); ok {
		sinktest.Run(t, func(*testing.T) sinktest.Receiver {
			s := &sum{
				name:    func() string { return "sum" },
				consume: func(_ *store.Snapshot, n uint64) (uint64, error) { return n, nil },
			}
			faults[name].put(s)
			return sinktest.Receiver{Sink: s, Received: func(string) uint64 { return s.total.Load() }}
		})
		return
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFaultySinksFail$")
			cmd.Env = append(os.Environ(), chosen+"="+name)
			out, err := cmd.CombinedOutput()
			switch {
			case fault.noticed == "" && err != nil:
				t.Errorf("%v\n%s", err, out)
			case fault.noticed != "" && !strings.Contains(string(out), "--- FAIL: TestFaultySinksFail/"+fault.noticed+" "):
				t.Errorf("test %q does not fail:\n%s", fault.noticed, out)
			}
		})
	}
}
