package render

import (
	"bytes"
	"testing"

	"github.com/statsd-admin/statsd-admin/render/naming"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// TestUniqueSeries: names that differ in replaced bytes only share a series,
// unless each is to have its own. A family stays one, with and without tags.
func TestUniqueSeries(t *testing.T) {
	for unique, want := range map[bool]string{
		false: "# TYPE proxy_a_b counter\nproxy_a_b{} 111\nproxy_a_b{t=\"x\"} 1000\n",
		true: "# TYPE proxy_a_b counter\nproxy_a_b{} 1\nproxy_a_b{t=\"x\"} 1000\n" +
			"# TYPE proxy_a_b_counter counter\nproxy_a_b_counter{} 10\n# TYPE proxy_a_b_counter_6783a31eabf68ccc counter\nproxy_a_b_counter_6783a31eabf68ccc{} 100\n",
	} {
		st := newStore(store.Options{Product: "proxy", Naming: naming.Rules{Unique: unique}})
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

// TestUniqueSeriesStayShort: however many names differ in replaced bytes
// only, each has a metric name of its own that is little longer than the name.
func TestUniqueSeriesStayShort(t *testing.T) {
	const names = 1 << 12
	st := newStore(store.Options{Product: "proxy", Naming: naming.Rules{Unique: true}})
	network := st.ScopeWith("", store.ScopeOptions{Network: true})
	for i := range names {
		var name []byte
		for bit := range 12 {
			name = append(name, 'a', "._"[i>>bit&1])
		}
		network.Counter(string(append(name, 'a'))).Inc()
	}
	var b bytes.Buffer
	if err := Exposition(&b, st, Options{}); err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for line := range bytes.Lines(b.Bytes()) {
		if len(line) > 80 {
			t.Fatalf("a line of %d bytes: %.100q", len(line), line)
		}
		if line[0] != '#' {
			seen[string(line)] = true
		}
	}
	if len(seen) != names {
		t.Errorf("%d series of %d names", len(seen), names)
	}
}
