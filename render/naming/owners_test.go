package naming_test

import (
	"testing"

	"github.com/statsd-admin/statsd-admin/render/naming"
)

func TestHistogramsOwnTheNamesOfTheirSamples(t *testing.T) {
	o := naming.NewOwners[int]()
	o.Set("a", true, 1)
	for _, name := range []string{"a", "a_bucket", "a_sum", "a_count"} {
		if owner, ok := o.Find(name, false); !ok || owner != 1 {
			t.Errorf("%s: owner %d, %t; want 1", name, owner, ok)
		}
	}
	o.Set("b_sum", false, 2)
	if owner, ok := o.Find("b", true); !ok || owner != 2 {
		t.Errorf("a histogram b would take b_sum from its owner: %d, %t", owner, ok)
	}
	if _, ok := o.Find("b", false); ok {
		t.Error("a counter b conflicts with b_sum")
	}
	o.Set("a_sum", false, 3)
	o.Delete("a", true, 1)
	if owner, ok := o.Find("a_sum", false); !ok || owner != 3 {
		t.Errorf("a_sum went with the name of another owner: %d, %t", owner, ok)
	}
	if o.Len() != 2 {
		t.Errorf("%d names are owned, want 2", o.Len())
	}
}
