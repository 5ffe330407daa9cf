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

func TestStepVisitsAll(t *testing.T) {
	for _, n := range []int{1000, 10_000, 1 << 16} {
		seen := make([]bool, n)
		left := n
		for i, at := 0, 0; i < n; i++ {
			if !seen[at] {
				left--
			}
			seen[at] = true
			at = Step(at, n)
		}
		if left != 0 {
			t.Errorf("of %d places %d are never visited", n, left)
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
