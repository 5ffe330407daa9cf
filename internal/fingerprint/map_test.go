package fingerprint

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

// lengths are text lengths for each path through the rounds.
var lengths = []int{0, 1, 3, 4, 7, 8, 15, 16, 17, 32, 33, 60, 64, 65, 128, 129, 300}

func texts(n int) []string {
	all := make([]string, n)
	for i := range all {
		text := fmt.Sprintf("%d.", i)
		all[i] = text + strings.Repeat("x", max(0, lengths[i%len(lengths)]-len(text)))
	}
	return all
}

// TestMapFindsWhatWasPut fills a map up to one free entry, so that searches wrap
// around, and compares it with a Go map.
func TestMapFindsWhatWasPut(t *testing.T) {
	eachForm(t, func(t *testing.T, k *Keys) {
		for _, room := range []int{groupSize, 64, 1 << 12} {
			m, want := NewMap(room), map[Key]uint32{}
			salt, other := Salt{rand.Uint64(), rand.Uint64()}, Salt{rand.Uint64(), rand.Uint64()}
			all := texts(2 * room)
			for i, text := range all[:room-1] {
				if v, ok := m.Find(k, &salt, text); ok {
					t.Fatalf("%d of %d: %q is there, %d, before it was put", i, room, text, v)
				}
				m.Put(k.Key(&salt, text), uint32(i))
				want[k.Key(&salt, text)] = uint32(i)
			}
			for i := 0; i < room-1; i += 3 {
				m.Put(k.Key(&salt, all[i]), ^uint32(i))
				want[k.Key(&salt, all[i])] = ^uint32(i)
			}
			for i, text := range all {
				v, ok := m.Find(k, &salt, text)
				same, there := m.Get(k.Key(&salt, text))
				wanted, must := want[k.Key(&salt, text)]
				if ok != must || ok && v != wanted || same != wanted || there != must {
					t.Fatalf("%d of %d: %q: found %d %v, got %d %v, want %d %v", i, room, text, v, ok, same, there, wanted, must)
				}
				if twin := findPortable(m, k, &salt, text); twin >= 0 != ok || ok && uint32(twin) != v {
					t.Fatalf("%d of %d: %q: found %d %v, by the portable twin %d", i, room, text, v, ok, twin)
				}
				if _, ok := m.Find(k, &other, text); ok {
					t.Fatalf("%d of %d: %q is there under another salt", i, room, text)
				}
			}
			if got := maps.Collect(m.All()); !maps.Equal(got, want) || m.Cap() != room {
				t.Errorf("of %d keys all are %d, room for %d, want %d and room for %d", len(want), len(got), m.Cap(), len(want), room)
			}
		}
	})
}

// TestMapComparesAllBits puts keys that differ from the searched one in a single bit:
// neither an equal tag nor an equal half is enough.
func TestMapComparesAllBits(t *testing.T) {
	eachForm(t, func(t *testing.T, k *Keys) {
		salt := Salt{1, 2}
		key := k.Key(&salt, "name")
		for bit := range 96 {
			m, near := NewMap(groupSize), key
			if bit < 64 {
				near.low ^= 1 << bit
			} else {
				near.high ^= 1 << (bit - 64)
			}
			m.Put(near, 1)
			if v, ok := m.Find(k, &salt, "name"); ok {
				t.Errorf("a key with another bit %d is taken for it, %d", bit, v)
			}
			m.Put(key, 2)
			if v, ok := m.Find(k, &salt, "name"); v != 2 || !ok {
				t.Errorf("beside a key with another bit %d: %d %v, want 2", bit, v, ok)
			}
		}
	})
}

// TestMapIsReadWhileItIsWritten: a reader sees a key with a current or former value, or not
// at all.
func TestMapIsReadWhileItIsWritten(t *testing.T) {
	eachForm(t, func(t *testing.T, k *Keys) {
		const room = 1 << 10
		m, salt, all := NewMap(room), Salt{3, 4}, texts(room-1)
		var readers sync.WaitGroup
		for range 3 {
			readers.Go(func() {
				for last := len(all) - 1; ; {
					for i, text := range all {
						if v, ok := m.Find(k, &salt, text); ok && v%room != uint32(i) {
							t.Errorf("%q has the value %d of another", text, v)
							return
						}
					}
					if v, ok := m.Find(k, &salt, all[last]); ok && v/room == 3 {
						return
					}
				}
			})
		}
		for round := range uint32(4) {
			for i, text := range all {
				m.Put(k.Key(&salt, text), round*room+uint32(i))
			}
		}
		readers.Wait()
	})
}

func TestFindAllocatesNothing(t *testing.T) {
	eachForm(t, func(t *testing.T, k *Keys) {
		m, salt := NewMap(groupSize), Salt{}
		m.Put(k.Key(&salt, "name.1"), 7)
		buf := []byte("name.1")
		if n := testing.AllocsPerRun(100, func() {
			if v, ok := m.Find(k, &salt, text(buf)); v != 7 || !ok {
				t.Error("not found")
			}
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

func FuzzFind(f *testing.F) {
	f.Add("a", "b", uint64(0))
	f.Add(strings.Repeat("x", 64), strings.Repeat("x", 65), uint64(1))
	f.Fuzz(func(t *testing.T, text, other string, salted uint64) {
		k := fastKeys(t)
		m, salt := NewMap(groupSize), Salt{salted, salted >> 1}
		m.Put(k.Key(&salt, text), 1)
		if v, ok := m.Find(k, &salt, text); v != 1 || !ok {
			t.Fatalf("%q: %d %v, want 1", text, v, ok)
		}
		if _, ok := m.Find(k, &salt, other); ok != (text == other) {
			t.Fatalf("%q is found where %q is: %v", other, text, ok)
		}
	})
}
