package store

import (
	"strconv"
	"testing"
)

// TestNamesAreTrimmed: the table of names shrinks when most of its end is free, keeps the
// names that are held, and hands out numbers once.
func TestNamesAreTrimmed(t *testing.T) {
	var table nameTable
	key := func(i int) nameKey { return nameKey{false, strconv.Itoa(i)} }
	const all, kept = 4000, 100
	for i := range all {
		table.hold(key(i))
	}
	for i := range all {
		if i%10 != 0 || i >= 10*kept {
			table.forget(table.release(table.byText(key(i)).num))
		}
	}
	table.trim()
	if table.n > 10*kept || len(table.list.All()) > 10*kept+128 {
		t.Errorf("%d numbers in a list of %d for %d names", table.n, len(table.list.All()), kept)
	}
	numbers := map[uint32]int{}
	for i := 0; i < 10*kept; i += 10 {
		n := table.byText(key(i))
		if n == nil || table.at(n.num) != n {
			t.Fatalf("name %d is lost", i)
		}
		numbers[n.num] = i
	}
	for i := all; i < 2*all; i++ {
		num := table.hold(key(i))
		if other, taken := numbers[num]; taken {
			t.Fatalf("names %d and %d have number %d", i, other, num)
		}
		numbers[num] = i
		if table.at(num) != table.byText(key(i)) {
			t.Fatalf("name %d is not at its number", i)
		}
	}
}
