package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestRecordsOfABlock: records do not change while the memory of a block grows, which
// happens a few times only, and a full block has little to spare.
func TestRecordsOfABlock(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for name, size := range map[string]func(i int) int{
		"equal":  func(int) int { return 20 },
		"large":  func(int) int { return 3000 },
		"random": func(int) int { return 1 + random.IntN(100) },
		"first":  func(i int) int { return max(4, 4000-1000*i) },
	} {
		b := &block{}
		var want [][]byte
		grown := 0
		for i := range slotsPerBlock {
			rec := []byte(strings.Repeat(string(rune('a'+i%26)), size(i)))
			before := b.arena.Load()
			b.append(i, rec)
			b.n++
			want = append(want, rec)
			if after := b.arena.Load(); after != before {
				grown++
				if spare := len(after.b) - b.end; spare > max(1024, 2*b.end, 2000*size(i)) {
					t.Errorf("%s: %d bytes to spare behind %d", name, spare, b.end)
				}
			}
			if i%100 == 0 || i == slotsPerBlock-1 {
				for j, rec := range want {
					if got := b.record(j); string(got[:len(rec)]) != string(rec) || int(b.offset[j+1]-b.offset[j]) != len(rec) {
						t.Fatalf("%s: record %d is %q after %d, want %q", name, j, got[:len(rec)], i, rec)
					}
				}
			}
		}
		if grown > 20 {
			t.Errorf("%s: the memory grew %d times", name, grown)
		}
		if !b.full() {
			t.Errorf("%s: the block is not full", name)
		}
		b.trim()
		if spare := len(b.arena.Load().b) - b.end; spare < 0 || spare > b.end/16 {
			t.Errorf("%s: %d bytes to spare behind %d in a full block", name, spare, b.end)
		}
		trimmed := b.arena.Load()
		if b.trim(); b.arena.Load() != trimmed {
			t.Errorf("%s: the memory was replaced by as much", name)
		}
	}
}

// TestFullBlocksAreTrimmed: the store trims a block with its last stat.
func TestFullBlocksAreTrimmed(t *testing.T) {
	st := New(Options{})
	for i := range slotsPerBlock {
		st.Root().Counter(fmt.Sprint(strings.Repeat("long", 20-i/50), ".", i))
	}
	b := st.eachBlock()[0]
	if spare := len(b.arena.Load().b) - b.end; !b.full() || spare > b.end/16 {
		t.Errorf("%d bytes to spare behind %d", spare, b.end)
	}
}

// TestOwnersOfABlock: each stat has its owner, which takes memory only once they differ.
func TestOwnersOfABlock(t *testing.T) {
	b := &block{}
	want := []uint32{7, 7, 7}
	check := func(each bool) {
		t.Helper()
		for i, owner := range want {
			if got := b.owner(i); got != owner {
				t.Errorf("stat %d has the owner %d, want %d", i, got, owner)
			}
		}
		if got := b.owners.each.Load() != nil; got != each {
			t.Errorf("memory for each owner: %t, want %t", got, each)
		}
	}
	for i := range want {
		b.setOwner(i, 7)
		b.n++
	}
	check(false)
	for _, next := range []uint32{9, 7, 8} {
		want = append(want, next)
		b.setOwner(b.n, next)
		b.n++
		check(true)
	}
	want[1] = 6
	b.setOwner(1, 6)
	check(true)
}

func TestBitsets(t *testing.T) {
	var a, b bitset
	var c atomicBits
	for _, i := range []int{0, 63, 64, slotsPerBlock - 1} {
		a.set(i)
		c.set(i)
	}
	b.set(64)
	b.set(65)
	list := func(has func(int) bool) (all []int) {
		for i := range slotsPerBlock {
			if has(i) {
				all = append(all, i)
			}
		}
		return all
	}
	check := func(what string, has func(int) bool, want ...int) {
		t.Helper()
		if got := list(has); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	check("set", a.has, 0, 63, 64, slotsPerBlock-1)
	check("atomic", c.has, 0, 63, 64, slotsPerBlock-1)
	copied := c.copy()
	check("copy", copied.has, 0, 63, 64, slotsPerBlock-1)
	c.clear(63)
	check("clear", c.has, 0, 64, slotsPerBlock-1)
	c.setAll(&b)
	c.setAll(nil)
	check("setAll", c.has, 0, 64, 65, slotsPerBlock-1)
	both := a
	both.setAll(&b)
	both.setAll(nil)
	check("both", both.has, 0, 63, 64, 65, slotsPerBlock-1)
	both.clearAll(&a)
	check("clearAll", both.has, 65)
}

// TestRecordOfAnEndedBlock: a reader that is late gets a stat without a name.
func TestRecordOfAnEndedBlock(t *testing.T) {
	name, rest := splitRecord(new(block).record(3))
	if len(name) != 1 || name[0] != 0 || len(rest) != 1 || rest[0] != 0 {
		t.Errorf("name %x, rest %x", name, rest)
	}
}

// TestTotalsOfABlockThatIsReplaced: a snapshot has no values of stats that took the places
// of a block whose last stats were about to be released at the flush.
func TestTotalsOfABlockThatIsReplaced(t *testing.T) {
	st := New(Options{})
	fill := func(n uint64) *Scope {
		sc := st.Scope("x")
		for i := range slotsPerBlock {
			sc.Counter(fmt.Sprint(i)).Add(n)
		}
		return sc
	}
	sc := fill(7)
	st.Flush(FlushOptions{}).Close()
	sc.Close()
	st.orderMu.Lock()
	st.mu.Lock()
	dead := st.dead
	st.dead = nil
	st.mu.Unlock()
	st.settleLocked(st.keepUnsent(dead))
	ended := st.endedLocked() // what a view that is being closed takes
	st.orderMu.Unlock()

	snap := st.Flush(FlushOptions{Totals: true})
	defer snap.Close()
	st.release(ended)
	fill(1)
	v := st.View()
	defer v.Close()
	c, _ := v.Find("x.0")
	if n, ok := snap.Total(&c); ok {
		t.Errorf("a snapshot has the total %d of a younger counter", n)
	}
}
