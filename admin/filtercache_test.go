//go:build !race

package admin

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/store"
)

// TestFilterCacheBytes asks for more filters than are kept, each as large as the
// limits allow and with results for all names, while names come and go.
func TestFilterCacheBytes(t *testing.T) {
	heap := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	st := store.New(store.Options{})
	s := newServer(t, Config{Store: st})
	before := heap()
	for i := range cachedFilters + 6 {
		sc := st.Scope(fmt.Sprint("scope", i))
		for j := range 2000 {
			sc.Counter(fmt.Sprint("name", j))
		}
		large := strings.Repeat("[ab]{999}", 9)
		if resp := s.Request("GET", fmt.Sprintf("/stats?filter=%d%s|name", i, large), nil); resp.Status != 200 {
			t.Fatalf("%d: %s", resp.Status, resp.Body)
		}
		sc.Close()
	}
	bytes := 0
	for _, e := range s.filters.entries {
		bytes += e.filter.Bytes()
	}
	kept := heap() - before
	t.Logf("%d filters, %d bytes by estimate, %d kept", len(s.filters.entries), bytes, kept)
	if bytes > cachedFilterBytes || kept > cachedFilterBytes*5/4 {
		t.Errorf("%d filters take %d bytes by estimate and %d of the heap, the budget is %d", len(s.filters.entries), bytes, kept, cachedFilterBytes)
	}
	runtime.KeepAlive(s)
}
