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

// TestNamesAreNotTrimmed while the table is small, has names at its end or is well used.
func TestNamesAreNotTrimmed(t *testing.T) {
	for name, tt := range map[string]struct {
		all     int
		kept    func(i int) bool
		trimmed bool
	}{
		"small":          {1023, func(i int) bool { return i == 0 }, false},
		"large enough":   {1024, func(i int) bool { return i == 0 }, true},
		"name at end":    {4000, func(i int) bool { return i == 3999 }, false},
		"name at half":   {4000, func(i int) bool { return i == 2000 }, false},
		"name below":     {4000, func(i int) bool { return i == 1999 }, true},
		"an eighth":      {4000, func(i int) bool { return i < 500 }, true},
		"more than that": {4000, func(i int) bool { return i < 501 }, false},
	} {
		var table nameTable
		for i := range tt.all {
			table.hold(nameKey{text: strconv.Itoa(i)})
		}
		for i := range tt.all {
			if !tt.kept(i) {
				table.forget(table.release(uint32(i)))
			}
		}
		table.trim()
		if trimmed := table.n < uint32(tt.all); trimmed != tt.trimmed {
			t.Errorf("%s: %d of %d numbers are left", name, table.n, tt.all)
		}
		for i := range tt.all {
			if tt.kept(i) && (table.at(uint32(i)) == nil || table.at(uint32(i)).String() != strconv.Itoa(i)) {
				t.Errorf("%s: name %d is lost", name, i)
			}
		}
	}
}

// TestNamesAreHeldByEach: a name stays until its last holder has released it.
func TestNamesAreHeldByEach(t *testing.T) {
	var table nameTable
	a, network := table.hold(nameKey{text: "a"}), table.hold(nameKey{true, "a"})
	if again := table.hold(nameKey{text: "a"}); again != a || network == a {
		t.Errorf("numbers %d, %d and %d", a, again, network)
	}
	if n := table.release(a); n != nil {
		t.Error("the name is free before its last holder has gone")
	}
	n := table.release(a)
	if n == nil || table.at(a) != n || table.byText(n.key) != n {
		t.Fatal("the name is not returned by its last holder")
	}
	if table.forget(n); table.at(a) != nil || table.byText(n.key) != nil {
		t.Error("the name is still there")
	}
	if b := table.hold(nameKey{text: "b"}); b != a || table.at(network).String() != "a" {
		t.Errorf("the next name has number %d, want %d again", b, a)
	}
}
