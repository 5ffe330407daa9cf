package admin

import (
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/store"
)

// TestOwnPrefix finds no stat of the server or the scheduler outside the prefix.
func TestOwnPrefix(t *testing.T) {
	st := store.New(store.Options{OwnPrefix: "own"})
	flush.New(flush.Config{Store: st})
	s := start(t, Config{Store: st})
	get(t, s, "/stats")
	v := st.View()
	defer v.Close()
	n := 0
	for _, set := range []store.NameSet{store.Scalars, store.Histograms, store.Texts} {
		for c := v.ByName(set); c.Next(); n++ {
			if name := string(c.AppendName(nil)); !strings.HasPrefix(name, "own.") {
				t.Errorf("%s is outside the prefix", name)
			}
		}
	}
	if n < 10 {
		t.Errorf("only %d stats", n)
	}
}
