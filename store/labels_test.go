package store_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// TestTagsOfNeighbours walks over stats of families with no, one and several
// tags, whose values are segments of the name or not: what a cursor remembers of
// one must not show in the next.
func TestTagsOfNeighbours(t *testing.T) {
	st := store.New(store.Options{})
	type want struct {
		family string
		tags   []tags.Tag
	}
	wanted := map[string]want{}
	own := func(name string) {
		st.Root().Counter(name)
		base, tgs := st.Tags().Extract(name, nil)
		wanted[name] = want{base, tgs}
	}
	given := func(sc *store.Scope, name string, tgs ...tags.Tag) {
		sc.Counter(name, tgs...)
		full := name
		for _, tag := range tgs {
			full += "." + tag.Name + "." + tag.Value
		}
		wanted[full] = want{name, tgs}
	}
	net := st.ScopeWith("", store.ScopeOptions{Network: true})
	for _, x := range []string{"a", "b", "c"} {
		own("plain." + x)
		own("cluster." + x + ".one")
		own("vhost.shop.vcluster." + x + ".two")
		own("vhost." + x + ".vcluster.cart.two")
		own(x + ".upstream_rq_200")
		own(x + ".upstream_rq_503")
		own("cluster." + x + ".upstream_rq_200")
		own("cluster." + x + ".grpc.S." + x + ".three")
		for _, y := range []string{"1", "2", "/p.q"} {
			given(net, "hits", tags.Tag{Name: "k", Value: x + y})
			given(net, "hits", tags.Tag{Name: "k", Value: x}, tags.Tag{Name: "l", Value: y})
			given(st.Root(), "given", tags.Tag{Name: "k", Value: y}, tags.Tag{Name: "l", Value: x})
		}
	}
	v := st.View()
	defer v.Close()
	byName, byFamily := v.ByName(store.Scalars), v.ByFamily(store.KindCounter)
	for order, c := range map[string]*store.Cursor{"name": &byName, "family": &byFamily} {
		n := 0
		for c.Next() {
			n++
			w, ok := wanted[c.Name()]
			if !ok {
				t.Fatalf("%q was not made", c.Name())
			}
			family := c.Name()
			if f := c.Family(); f != nil {
				family = f.String()
			}
			var labels []tags.Tag
			for _, l := range c.Labels() {
				labels = append(labels, tags.Tag{Name: l.Name.String(), Value: string(l.Value)})
			}
			if family != w.family || !slices.Equal(labels, w.tags) {
				t.Errorf("by %s: %q: family %q, labels %v; want %q, %v", order, c.Name(), family, labels, w.family, w.tags)
			}
			only := "none"
			if l, ok := c.OnlyLabel(); ok {
				only = fmt.Sprint(l.Name, "=", string(l.Value))
			}
			wantOnly := "none"
			if len(w.tags) == 1 {
				wantOnly = w.tags[0].Name + "=" + w.tags[0].Value
			}
			if only != wantOnly {
				t.Errorf("by %s: %q: only label %s, want %s", order, c.Name(), only, wantOnly)
			}
		}
		if n != len(wanted) {
			t.Errorf("by %s: %d stats, want %d", order, n, len(wanted))
		}
	}
}
