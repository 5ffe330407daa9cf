package config_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// TestMerge has each field in the first, the second and both validations.
func TestMerge(t *testing.T) {
	file := func(name string) config.Data { return config.Data{Kind: config.DataFile, Name: name} }
	plain := config.Validation{MaxVerifyDepth: config.DefaultVerifyDepth}
	for _, tt := range []struct {
		name string
		a, b func(*config.Validation)
		both func(*config.Validation) // if not as b alone
	}{
		{name: "ca", a: func(v *config.Validation) { v.TrustedCA = file("a") }, b: func(v *config.Validation) { v.TrustedCA = file("b") }},
		{name: "crl", a: func(v *config.Validation) { v.CRL = file("a") }, b: func(v *config.Validation) { v.CRL = file("b") }},
		{name: "directory", a: func(v *config.Validation) { v.WatchedDirectory = "a" }, b: func(v *config.Validation) { v.WatchedDirectory = "b" }},
		{name: "depth", a: func(v *config.Validation) { v.MaxVerifyDepth = 3 }, b: func(v *config.Validation) { v.MaxVerifyDepth = 4 }},
		{name: "leaf", a: func(v *config.Validation) { v.CRLOfLeafOnly = true }, b: func(v *config.Validation) { v.CRLOfLeafOnly = true }},
		{name: "roots", a: func(v *config.Validation) { v.SystemRoots = true }, b: func(v *config.Validation) { v.SystemRoots = true }},
		{name: "expired", a: func(v *config.Validation) { v.AllowExpired = true }, b: func(v *config.Validation) { v.AllowExpired = true }},
		{name: "untrusted", a: func(v *config.Validation) { v.AcceptUntrusted = true }, b: func(v *config.Validation) { v.AcceptUntrusted = true }},
		{name: "spki", a: func(v *config.Validation) { v.SPKI = []string{"a"} }, b: func(v *config.Validation) { v.SPKI = []string{"b"} },
			both: func(v *config.Validation) { v.SPKI = []string{"a", "b"} }},
		{name: "hashes", a: func(v *config.Validation) { v.Hashes = []string{"a"} }, b: func(v *config.Validation) { v.Hashes = []string{"b"} },
			both: func(v *config.Validation) { v.Hashes = []string{"a", "b"} }},
		{name: "names", a: func(v *config.Validation) { v.SANs = make([]config.SAN, 1) }, b: func(v *config.Validation) { v.SANs = make([]config.SAN, 2) },
			both: func(v *config.Validation) { v.SANs = make([]config.SAN, 3) }},
		{name: "untyped names", a: func(v *config.Validation) { v.SANs, v.UntypedSANs = make([]config.SAN, 1), true }, b: func(v *config.Validation) { v.SANs, v.UntypedSANs = make([]config.SAN, 2), true },
			both: func(v *config.Validation) { v.SANs, v.UntypedSANs = make([]config.SAN, 3), true }},
		{name: "typed and untyped names", a: func(v *config.Validation) { v.SANs = make([]config.SAN, 1) }, b: func(v *config.Validation) { v.SANs, v.UntypedSANs = make([]config.SAN, 2), true },
			both: func(v *config.Validation) { v.SANs = make([]config.SAN, 1) }},
		{name: "untyped and typed names", a: func(v *config.Validation) { v.SANs, v.UntypedSANs = make([]config.SAN, 1), true }, b: func(v *config.Validation) { v.SANs = make([]config.SAN, 2) }},
	} {
		with := func(f func(*config.Validation)) *config.Validation {
			v := plain
			v.SPKI, v.Hashes = slices.Clone(plain.SPKI), slices.Clone(plain.Hashes)
			if f != nil {
				f(&v)
			}
			return &v
		}
		both := tt.both
		if both == nil {
			both = tt.b
		}
		for _, c := range []struct {
			what          string
			v, over, want *config.Validation
		}{
			{"in neither", with(nil), with(nil), with(nil)},
			{"in the first", with(tt.a), with(nil), with(tt.a)},
			{"in the second", with(nil), with(tt.b), with(tt.b)},
			{"in both", with(tt.a), with(tt.b), with(both)},
			{"with nothing over it", with(tt.a), nil, with(tt.a)},
			{"over nothing", nil, with(tt.b), with(tt.b)},
		} {
			if diff := cmp.Diff(c.want, c.v.Merge(c.over), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s %s:\n%s", tt.name, c.what, diff)
			}
		}
	}
}
