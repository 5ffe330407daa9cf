package xds

import (
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/store"
)

// TestBudgetLimits: what fills the limits is kept, one resource or byte more is not. A
// negative limit is none, and a resource can always shrink.
func TestBudgetLimits(t *testing.T) {
	for _, tt := range []struct {
		name         string
		count, bytes int
		sizes        []int // of the resources, in their order
		kept         int
		want         string // the error about the next
	}{
		{"count", 2, 0, []int{1, 1, 1}, 2, "the limit of 2 resources"},
		{"bytes", 0, 10, []int{4, 6, 1}, 2, "the limit of 10 bytes of all resources"},
		{"nothing more", 0, 10, []int{10, 0}, 2, ""},
		{"no limit of resources", -1, 10, []int{1, 1, 1}, 3, ""},
		{"no limit of bytes", 3, -1, []int{1 << 40, 1 << 40}, 2, ""},
	} {
		st := store.New(store.Options{})
		b := newBudget(&Config{Store: st, MaxResources: tt.count, MaxResourceBytes: tt.bytes})
		charges := make([]charge, len(tt.sizes))
		kept, text := 0, ""
		for i, size := range tt.sizes {
			if err := b.replace(&charges[i], "r", size); err != nil {
				text = err.Error()
				if charges[i] != (charge{}) {
					t.Errorf("%s: a refused resource is charged: %+v", tt.name, charges[i])
				}
				continue
			}
			kept++
		}
		if kept != tt.kept || (text == "") != (tt.want == "") || !strings.Contains(text, tt.want) {
			t.Errorf("%s: %d kept, want %d; %q", tt.name, kept, tt.kept, text)
		}
		if got := b.overflow.Value(); got != uint64(len(tt.sizes)-tt.kept) {
			t.Errorf("%s: %d refused resources are counted", tt.name, got)
		}
		if err := b.replace(&charges[0], "r", 0); err != nil {
			t.Errorf("%s: a resource that shrinks: %v", tt.name, err)
		}
	}
}

// TestBudgetBeyondItsLimits: resources restored beyond the limits can be replaced, though not
// by more bytes.
func TestBudgetBeyondItsLimits(t *testing.T) {
	b := newBudget(&Config{Store: store.New(store.Options{}), MaxResources: 1, MaxResourceBytes: 10})
	charges := make([]charge, 2)
	for i := range charges {
		b.restore(&charges[i], charge{true, 10})
	}
	for _, tt := range []struct {
		size int
		ok   bool
	}{{10, true}, {11, false}, {9, true}, {10, false}} {
		if err := b.replace(&charges[0], "r", tt.size); (err == nil) != tt.ok {
			t.Errorf("%d bytes: %v", tt.size, err)
		}
	}
	if n, size := b.countNow.Value(), b.sizeIs.Value(); n != 2 || size != 19 {
		t.Errorf("%d resources with %d bytes are shown", n, size)
	}
}

// TestNodeMetadataMustBeJSON names the part of the configuration that is wrong.
func TestNodeMetadataMustBeJSON(t *testing.T) {
	c, err := New(Config{Store: store.New(store.Options{}), Node: Node{ID: "n", Metadata: map[string]any{"c": make(chan int)}}})
	if c != nil || err == nil || !strings.Contains(err.Error(), "metadata of the node") {
		t.Errorf("%v, %v", c, err)
	}
}
