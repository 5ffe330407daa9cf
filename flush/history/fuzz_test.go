package history

import (
	"encoding/binary"
	"slices"
	"testing"
)

// FuzzSection checks that changes survive writing, reading, finding and merging.
func FuzzSection(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 5, 2, 0, 1, 0, 7}, false)
	f.Add([]byte{0xff, 3, 0xff, 0xff, 0xff, 0, 0, 0, 0, 1}, true)
	f.Add([]byte{}, false)
	f.Fuzz(func(t *testing.T, data []byte, signed bool) {
		want := make(map[uint64]uint64)
		for ; len(data) >= 5; data = data[5:] {
			b := blockOf{uint32(data[0]) << (data[4] % 8), uint32(data[1] >> 6)}
			diff := uint64(data[3]) << (data[4] % 57)
			if data[4] > 200 {
				diff = -diff
			}
			if diff != 0 {
				want[b.ref(int(binary.LittleEndian.Uint16(data[1:])&1023))] = diff
			}
		}
		refs := make([]uint64, 0, len(want))
		for ref := range want {
			refs = append(refs, ref)
		}
		slices.SortFunc(refs, func(a, b uint64) int {
			x, i := split(a)
			y, j := split(b)
			switch {
			case x != y && x.less(y):
				return -1
			case x != y:
				return 1
			}
			return i - j
		})
		var w writer
		w.reset(signed)
		for _, ref := range refs {
			w.add(ref, want[ref])
		}
		s := w.section()
		n := 0
		for r := s.reader(); r.next(); {
			r.each(func(slot int, diff uint64) bool {
				ref := r.block.ref(slot)
				if ref != refs[n] || diff != want[ref] {
					t.Fatalf("change %d is %d of %d, want %d of %d", n, diff, ref, want[refs[n]], refs[n])
				}
				n++
				return true
			})
		}
		if n != len(refs) {
			t.Fatalf("%d changes, want %d", n, len(refs))
		}
		twice := merge(&w, []section{s, s, {signed: signed}})
		for _, ref := range refs {
			if got := s.find(ref); got != want[ref] {
				t.Errorf("found %d of %d, want %d", got, ref, want[ref])
			}
			if got := twice.find(ref); got != 2*want[ref] {
				t.Errorf("twice is %d of %d, want %d", got, ref, 2*want[ref])
			}
			if got := s.find(ref + 1); got != want[ref+1] {
				t.Errorf("found %d of %d, want %d", got, ref+1, want[ref+1])
			}
		}
	})
}
