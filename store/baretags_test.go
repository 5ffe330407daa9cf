package store_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// TestTagsWithoutValue: a tag without a value leaves the values of those behind it alone.
func TestTagsWithoutValue(t *testing.T) {
	for _, network := range []bool{false, true} {
		st := store.New(store.Options{})
		sc := st.ScopeWith("", store.ScopeOptions{Network: network})
		for i, list := range []string{"a", "a b=1", "b=1 a", "a b c=2", "a=1 b c=3 d", "a b=1 c d=x.y e=5"} {
			var tgs []tags.Tag
			for text := range strings.FieldsSeq(list) {
				name, value, _ := strings.Cut(text, "=")
				tgs = append(tgs, tags.Tag{Name: name, Value: value})
			}
			name := fmt.Sprint("c", i)
			sc.Counter(name, tgs...).Inc()
			v := st.View()
			c := v.ByFamily(store.KindCounter)
			var got []string
			for c.Next() {
				if family := c.Family(); family == nil || family.String() != name {
					continue
				}
				for _, l := range c.Labels() {
					got = append(got, strings.TrimSuffix(l.Name.String()+"="+string(l.Value), "="))
				}
			}
			v.Close()
			if strings.Join(got, " ") != list {
				t.Errorf("received %t, tags %q: %q", network, list, got)
			}
		}
	}
}

// TestTagsAlone: the tags of a stat without a name are its whole name, by which it is
// found again.
func TestTagsAlone(t *testing.T) {
	for _, network := range []bool{false, true} {
		st := store.New(store.Options{})
		sc := st.ScopeWith("", store.ScopeOptions{Network: network})
		for range 2 {
			sc.Counter("", tags.Tag{Name: "a", Value: "1"}, tags.Tag{Name: "b", Value: "2"}).Inc()
		}
		v := st.View()
		c, _ := v.Find("a.1.b.2")
		got := fmt.Sprint(c.Name(), " ", c.Uint())
		for _, l := range c.Labels() {
			got += " " + l.Name.String() + "=" + string(l.Value)
		}
		v.Close()
		if want := "a.1.b.2 2 a=1 b=2"; got != want {
			t.Errorf("received %t: %s, want %s", network, got, want)
		}
	}
}

// TestNamesOfNothing asks for stats whose name and tags are empty or dots, which input
// from the network can be: nothing panics, and a second request finds the first stat.
func TestNamesOfNothing(t *testing.T) {
	parts := []string{"", ".", "..", "a", ".a", "a."}
	for _, network := range []bool{false, true} {
		for _, name := range parts {
			for _, key := range parts {
				for _, value := range parts {
					st := store.New(store.Options{})
					sc := st.ScopeWith("", store.ScopeOptions{Network: network})
					for range 3 {
						sc.Counter(name, tags.Tag{Name: key, Value: value}).Inc()
					}
					v := st.View()
					n := 0
					for c := v.ByFamily(store.KindCounter); c.Next(); {
						n++
					}
					v.Close()
					if n != 1 {
						t.Errorf("received %t: %q with tag %q: %q: %d stats for one", network, name, key, value, n)
					}
				}
			}
		}
	}
}
