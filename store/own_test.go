package store_test

import (
	"fmt"
	"testing"

	"github.com/statsd-admin/statsd-admin/store"
)

func TestOwnPrefix(t *testing.T) {
	none := 0
	for prefix, want := range map[string]string{"": "server.stats_overflow.counter", "statsd_admin.": "statsd_admin.server.stats_overflow.counter"} {
		st := store.New(store.Options{OwnPrefix: prefix})
		if prefix == "" && st.Own() != st.Root() {
			t.Error("without a prefix, the scope is not the root")
		}
		st.ScopeWith("x", store.ScopeOptions{MaxCounters: &none}).Counter("refused").Inc()
		st.Own().Close()
		st.Own().Counter("server.live").Inc()
		v := st.View()
		var got []string
		for c := v.ByName(store.Scalars); c.Next(); {
			got = append(got, string(c.AppendName(nil)))
		}
		v.Close()
		if len(got) != 2 || got[1] != want {
			t.Errorf("prefix %q: the stats are %q, want %q among two", prefix, got, want)
		}
	}
}

func ExampleStore_Own() {
	st := store.New(store.Options{OwnPrefix: "telemetry"})
	fmt.Println(st.Own().Scope("server").Prefix())
	fmt.Println(st.Scope("http").Prefix())
	// Output:
	// telemetry.server
	// http
}
