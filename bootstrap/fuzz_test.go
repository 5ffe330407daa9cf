package bootstrap

import (
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func jsonText(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.MarshalIndent(v, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// FuzzBootstrapYAML checks three things of any text: reading it does not
// panic; every refusal says where; and an accepted text reads the same after
// it was written out as JSON, so neither aliases nor merge keys nor spellings
// change a meaning.
func FuzzBootstrapYAML(f *testing.F) {
	for _, name := range []string{"testdata/full.yaml", "testdata/wrong.yaml", "default.yaml"} {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("node: &n {id: a}\nwatchdogs: {main_thread_watchdog: {<<: *n}}\n"))
	f.Add([]byte("runtime: {symlink_root: /r, base: {}}\nlayered_runtime: {}\nwatchdog: {}\n"))
	f.Add([]byte("? a\n: !!binary x\n"))
	f.Add([]byte(`{"admin": {"limits": {"headers": 1e1}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		opts := Options{AllowUnknownFields: true}
		c, err := Parse("a.yaml", text, opts)
		if err != nil {
			var errs *Errors
			if !errors.As(err, &errs) || len(errs.List) == 0 {
				t.Fatalf("error without a list: %v", err)
			}
			for _, e := range errs.List {
				if e.Position.File != "a.yaml" || e.Message == "" {
					t.Errorf("error without place or message: %#v", e)
				}
			}
			return
		}
		d := &decoder{doc: c.Root.doc}
		again, err := Parse("a.json", jsonText(t, d.plain(c.Root.Node, "")), opts)
		if err != nil {
			t.Skip("numbers and times that JSON writes otherwise")
		}
		if diff := cmp.Diff(c, again, cmpopts.IgnoreTypes(Raw{}), cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}, netip.Prefix{}), cmpopts.EquateNaNs(),
			sameMessages(), cmpopts.IgnoreFields(Config{}, "Warnings", "UnknownFields"), cmpopts.IgnoreUnexported(Config{})); diff != "" {
			t.Errorf("read again from JSON (-yaml +json):\n%s", diff)
		}
	})
}
