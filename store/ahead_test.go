package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/statsd-admin/statsd-admin/internal/prefetch"
)

// address is the address of a value as a hint.
func address[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

// hintsOf returns the hints for a record: its start, and its end unless that is in the
// same cache line.
func hintsOf(b *block, i int) []uintptr {
	at := address(&b.arena.Load().b[b.offset[i]])
	if end := at + mostRecords - 1; end/lineBytes != at/lineBytes {
		return []uintptr{at, end}
	}
	return []uintptr{at}
}

// TestHintsOfAWalk: the hints of a cursor are the records, offsets and values of the stats
// that follow.
func TestHintsOfAWalk(t *testing.T) {
	st := New(Options{})
	for i := range slotsPerBlock + 10 {
		st.Root().Counter(fmt.Sprintf("c%04d", i))
		st.Root().Text(fmt.Sprintf("t%04d", i))
	}
	v := st.View()
	defer v.Close()
	c := v.cursor(nil)
	var ids []id
	for _, set := range []NameSet{Scalars, Texts} {
		for _, chunk := range v.ByName(set).chunks {
			ids = append(ids, chunk[0], chunk[len(chunk)-1])
		}
	}
	var records, values []uintptr
	for _, x := range ids {
		b, i := st.at(x)
		records = append(records, hintsOf(b, i)...)
		if b.pg != nil {
			values = append(values, address(&b.offset[i]), address(b.pg.word(i)))
		}
	}
	if n := c.hintRecords(ids); !slices.Equal(c.hints[:n], records) {
		t.Errorf("hints %x of records, want %x", c.hints[:n], records)
	}
	if n := c.hintValues(ids); !slices.Equal(c.hints[:n], values) || len(values) == 0 {
		t.Errorf("hints %x of values, want %x", c.hints[:n], values)
	}
	walk := v.ByFamily(KindCounter)
	chunk := walk.chunks[0]
	if walk.Next(); prefetch.Enabled {
		b, i := st.at(chunk[2*batchSteps])
		if walk.hints[0] != address(&b.offset[i]) || walk.hints[1] != address(b.pg.word(i)) {
			t.Errorf("hints %x at the first stat, want those of the batch after the next", walk.hints[:2])
		}
	}
	walk = v.ByName(Scalars)
	if walk.Next(); walk.hints != (prefetch.Batch{}) {
		t.Error("hints in an order that is not scattered")
	}
	if !v.ByFamily(KindCounter).scattered || v.ByName(Scalars).scattered {
		t.Error("only the order of families is scattered in memory")
	}
}

// TestHintsOfChanges: the hints for the changes of a snapshot are what their names, tags and
// times of creation take, of the changes of a batch and of no others.
func TestHintsOfChanges(t *testing.T) {
	st := New(Options{})
	var blocks []*block
	for i := range slotsPerBlock + 10 {
		b, slot := st.Root().Counter(fmt.Sprint("c", i, strings.Repeat("x", i%60))).w.home()
		if b.inherit(slot); slot == 0 {
			blocks = append(blocks, b)
		}
	}
	v := st.View()
	defer v.Close()
	var list []counterChange
	for i := range aheadSteps + 3 { // the last change of one block, and then those of another
		if i < 5 {
			list = append(list, counterChange{x: makeID(blocks[0].index, slotsPerBlock-5+i)})
		} else {
			list = append(list, counterChange{x: makeID(blocks[1].index, (i-5)%10)})
		}
	}
	c := v.cursor(nil)
	a := aheadOf(&c, list)
	for from, of := range map[int][]counterChange{0: list[:aheadSteps], aheadSteps: list[aheadSteps:], 2 * aheadSteps: nil} {
		var want [3][]uintptr
		var last *block
		for _, ch := range of {
			b, i := st.at(ch.x)
			if b != last {
				last = b
				want[0] = append(want[0], address(b), address(&b.older))
				want[1] = append(want[1], address(b.arena.Load()), address(b.born.Load()))
				want[2] = append(want[2], address(&(*b.born.Load())[0]))
			}
			want[0] = append(want[0], address(&b.offset[i]))
			want[2] = append(want[2], hintsOf(b, i)...)
		}
		for pass, do := range []func(int){a.blocks, a.pointers, a.records} {
			c.hints = prefetch.Batch{}
			do(from)
			if n := len(want[pass]); !slices.Equal(c.hints[:n], want[pass]) || slices.Max(c.hints[n:]) != 0 {
				t.Errorf("pass %d from change %d: hints %x, want %x", pass, from, c.hints, want[pass])
			}
			if a.hints != 0 {
				t.Errorf("pass %d: %d hints are left", pass, a.hints)
			}
		}
	}
	// Before the first change of a batch, the last hints are the records of the next batch.
	a.records(aheadSteps)
	next := c.hints
	for n, want := range []prefetch.Batch{0: next, 1: {}, aheadSteps - 1: {}} {
		c.hints = prefetch.Batch{}
		if a.before(n); n == 0 && prefetch.Enabled && c.hints[0] != next[0] || n > 0 && c.hints != want {
			t.Errorf("before change %d: hints %x", n, c.hints)
		}
	}
}
