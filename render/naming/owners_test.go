package naming_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/statsd-admin/statsd-admin/render/naming"
)

// owned has the families of a test: their metric names and which are histograms.
type owned struct {
	metric    map[naming.Owner]string
	histogram map[naming.Owner]bool
}

func newOwned() (*owned, naming.Owners) {
	f := &owned{make(map[naming.Owner]string), make(map[naming.Owner]bool)}
	return f, naming.NewOwners(func(o naming.Owner, metric string) bool {
		return naming.Owns(f.metric[o], f.histogram[o], metric)
	})
}

func TestHistogramsOwnTheNamesOfTheirSamples(t *testing.T) {
	f, o := newOwned()
	f.metric[1], f.histogram[1] = "a", true
	o.Set("a", true, 1)
	for _, name := range []string{"a", "a_bucket", "a_sum", "a_count"} {
		if owner, ok := o.Find(name, false); !ok || owner != 1 {
			t.Errorf("%s: owner %d, %t; want 1", name, owner, ok)
		}
	}
	f.metric[2] = "b_sum"
	o.Set("b_sum", false, 2)
	if owner, ok := o.Find("b", true); !ok || owner != 2 {
		t.Errorf("a histogram b would take b_sum from its owner: %d, %t", owner, ok)
	}
	if _, ok := o.Find("b", false); ok {
		t.Error("a counter b conflicts with b_sum")
	}
	f.metric[3] = "a_sum"
	o.Set("a_sum", false, 3)
	o.Delete("a", true, 1)
	if owner, ok := o.Find("a_sum", false); !ok || owner != 3 {
		t.Errorf("a_sum went with the name of another owner: %d, %t", owner, ok)
	}
	if o.Len() != 2 {
		t.Errorf("%d names are owned, want 2", o.Len())
	}
}

// TestOwnersAreFound compares Owners with a map while names come and go. The
// largest owners use all bits.
func TestOwnersAreFound(t *testing.T) {
	f, o := newOwned()
	want := make(map[string]naming.Owner)
	rnd := rand.New(rand.NewPCG(1, 2))
	for round := range 4 {
		for i := range 20_000 {
			name := fmt.Sprint("name", rnd.IntN(5_000))
			owner, taken := want[name]
			if got, ok := o.Find(name, false); ok != taken || got != owner {
				t.Fatalf("%s: owner %d, %t; want %d, %t", name, got, ok, owner, taken)
			}
			switch {
			case !taken && (round%2 == 0 || i%8 == 0):
				owner = naming.Owner(1<<36 - 1 - rnd.IntN(1<<30))
				if _, used := f.metric[owner]; used {
					continue
				}
				f.metric[owner], want[name] = name, owner
				o.Set(name, false, owner)
			case taken && (round%2 == 1 || i%8 == 0):
				o.Delete(name, false, owner)
				delete(f.metric, owner)
				delete(want, name)
			}
		}
		if o.Len() != len(want) {
			t.Fatalf("%d names are owned, want %d", o.Len(), len(want))
		}
	}
}

// TestOwns: a histogram owns the names of its samples too.
func TestOwns(t *testing.T) {
	for _, tt := range []struct {
		name             string
		plain, histogram bool
	}{
		{"m", true, true}, {"m_sum", false, true}, {"m_count", false, true}, {"m_bucket", false, true},
		{"m_total", false, false}, {"", false, false}, {"x", false, false}, {"mm", false, false}, {"m_sum_sum", false, false},
	} {
		if got := naming.Owns("m", false, tt.name); got != tt.plain {
			t.Errorf("m owns %q: %t", tt.name, got)
		}
		if got := naming.Owns("m", true, tt.name); got != tt.histogram {
			t.Errorf("the histogram m owns %q: %t", tt.name, got)
		}
	}
	if got := naming.Suffix("gauge"); got != "_gauge" {
		t.Errorf("the suffix of gauges is %q", got)
	}
}
