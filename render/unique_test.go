package render

import (
	"bytes"
	"testing"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// TestSec_06_UniqueSeries: names that differ in replaced bytes only share a series,
// unless each is to have its own. A family stays one, with and without tags.
func TestSec_06_UniqueSeries(t *testing.T) {
	for unique, want := range map[bool]string{
		false: "# TYPE proxy_a_b counter\nproxy_a_b{} 111\nproxy_a_b{t=\"x\"} 1000\n",
		true: "# TYPE proxy_a_b counter\nproxy_a_b{} 1\nproxy_a_b{t=\"x\"} 1000\n" +
			"# TYPE proxy_a_b_counter counter\nproxy_a_b_counter{} 10\n# TYPE proxy_a_b_counter_counter counter\nproxy_a_b_counter_counter{} 100\n",
	} {
		st := store.New(store.Options{Product: "proxy", Naming: store.Naming{Unique: unique}})
		exposition := func() string {
			t.Helper()
			var b bytes.Buffer
			if err := Exposition(&b, st, Options{}); err != nil {
				t.Fatal(err)
			}
			return b.String()
		}
		st.Root().Counter("a.b").Add(1)
		exposition()
		st.Root().Counter("a-b").Add(10)
		exposition()
		st.Root().Counter("a:b").Add(100)
		st.Root().Counter("a.b", tags.Tag{Name: "t", Value: "x"}).Add(1000)
		for range 2 {
			if got := exposition(); got != want {
				t.Errorf("unique %t:\n%swant\n%s", unique, got, want)
			}
		}
	}
}
