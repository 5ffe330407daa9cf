package peers

import (
	"hash/maphash"
	"io"
	"math/bits"
	"sync/atomic"

	"github.com/statsd-admin/statsd-admin/bench/workload"
)

// padded is an atomic that shares its cache lines with nothing.
type padded struct {
	_ [64]byte
	atomic.Uint64
	_ [64]byte
}

type logLinear struct {
	bins [57 << 7]atomic.Uint64
	sum  atomic.Uint64
}

func (l *logLinear) Record(v uint64) {
	e := uint(bits.Len64(v|255)) - 8
	l.bins[e<<7+uint(v>>(e&63))].Add(1)
	l.sum.Add(v)
}

// words are concatenated names.
type words struct {
	text []byte
	ends []int
}

func (words) write(io.Writer) error { return errCannot }

// limit is the minimum for the work: an atomic, a hash and a probe, a copy of the
// name.
func limit() library {
	return library{
		name: "limit",
		counter: func() loop {
			c := new(padded)
			return func(_, n int) {
				for range n {
					c.Add(1)
				}
			}
		},
		gaugeSet: func() loop {
			c := new(padded)
			return func(_, n int) {
				for i := range n {
					c.Store(uint64(i))
				}
			}
		},
		gaugeAdd: func() loop {
			c := new(padded)
			return func(_, n int) {
				for range n {
					c.Add(1)
				}
			}
		},
		record: func(vals []uint64) loop {
			h := new(logLinear)
			return func(_, n int) {
				for i := range n {
					h.Record(vals[i%len(vals)])
				}
			}
		},
		byName: func(names []string) loop {
			type place struct {
				name string
				n    *atomic.Uint64
			}
			seed := maphash.MakeSeed()
			table := make([]place, 1<<bits.Len(uint(2*len(names))))
			find := func(name string) *place {
				at := maphash.String(seed, name) & uint64(len(table)-1)
				for table[at].n != nil && table[at].name != name {
					at = (at + 1) & uint64(len(table)-1)
				}
				return &table[at]
			}
			for _, n := range names {
				*find(n) = place{n, new(atomic.Uint64)}
			}
			return func(core, n int) {
				i := core * 97
				for range n {
					find(names[i]).n.Add(1)
					i = workload.Next(i, len(names))
				}
			}
		},
		create: func(names []string) population {
			var l words
			for _, n := range names {
				l.text = append(l.text, n...)
				l.ends = append(l.ends, len(l.text))
			}
			return l
		},
		flush: func(names []string) (func(), func()) {
			words, latched := make([]atomic.Uint64, len(names)), make([]uint64, len(names))
			var changed []uint32
			return func() {
					for i := 0; i < len(words); i += 100 {
						words[i].Add(1)
					}
				}, func() {
					changed = changed[:0]
					for i := range words {
						if v := words[i].Load(); v != latched[i] {
							latched[i] = v
							changed = append(changed, uint32(i))
						}
					}
				}
		},
	}
}
