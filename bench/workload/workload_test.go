package workload

import "testing"

func TestNamesAreDifferent(t *testing.T) {
	for what, names := range map[string][]string{"clusters": Clusters(100_000), "dynamic": Dynamic(100_000)} {
		seen := map[string]bool{}
		for _, n := range names {
			seen[n] = true
			if what == "dynamic" && len(n) != 60 {
				t.Fatalf("%q has %d bytes, want 60", n, len(n))
			}
		}
		if len(seen) != len(names) {
			t.Errorf("%s: %d different names of %d", what, len(seen), len(names))
		}
	}
	tags := map[Endpoint]bool{}
	for _, e := range Endpoints(10_000) {
		tags[e] = true
	}
	if len(tags) != 10_000 {
		t.Errorf("%d different endpoints of 10000", len(tags))
	}
}

func TestSpreadKeepsAllAndNoNeighbours(t *testing.T) {
	for _, n := range []int{1000, 10_000, 1 << 16} {
		places := make([]int, n)
		for i := range places {
			places[i] = i
		}
		Spread(places)
		left := make(map[int]bool)
		for i, p := range places {
			left[p] = true
			if next := places[Next(i, n)]; next == p+1 || next == p-1 {
				t.Errorf("of %d places %d and %d are still beside each other", n, p, next)
			}
		}
		if len(left) != n {
			t.Errorf("of %d places %d are left", n, len(left))
		}
	}
}

func TestPublicNamesHaveTheRightSize(t *testing.T) {
	bytes := 0
	for s := range PublicScopes {
		for c := range PublicCounters {
			bytes += len(PublicScope(s)) + len(".") + len(PublicCounter(c)) + len(": 0\n")
		}
	}
	if bytes != PublicText {
		t.Errorf("lines have %d bytes, want %d", bytes, PublicText)
	}
}
