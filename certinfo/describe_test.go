package certinfo

import (
	"crypto/x509"
	"math/big"
	"net"
	"net/url"
	"reflect"
	"testing"
	"time"
)

func TestDescribeListsAllNamesInUTC(t *testing.T) {
	from := time.Date(2026, 1, 1, 1, 0, 0, 0, time.FixedZone("", 3600))
	got := Describe("edge.pem", &x509.Certificate{
		SerialNumber: big.NewInt(255), NotBefore: from, NotAfter: from.Add(day),
		DNSNames:    []string{"a.example", "b.example"},
		URIs:        []*url.URL{{Scheme: "spiffe", Host: "td", Path: "/x"}, {Scheme: "spiffe", Host: "td", Path: "/y"}},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP("::1")},
	})
	want := Certificate{
		Path: "edge.pem", SerialNumber: "ff", From: from.UTC(), Until: from.Add(day).UTC(),
		AltNames: []AltName{{"dns", "a.example"}, {"dns", "b.example"}, {"uri", "spiffe://td/x"}, {"uri", "spiffe://td/y"}, {"ip_address", "127.0.0.1"}, {"ip_address", "::1"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestFirstExpiringAnywhereInAList has the certificate and the OCSP response that expire
// first at each position, also beside certificates without a response.
func TestFirstExpiringAnywhereInAList(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 3 {
		for j := range 3 {
			r := &Registry{Now: func() time.Time { return now }}
			for context := range 3 {
				var list []Certificate
				for k := range 3 {
					c := Certificate{Until: now.Add(50 * day)}
					if k != (j+1)%3 {
						c.OCSP = &Validity{Until: now.Add(time.Hour)}
					}
					if context == i && k == j {
						c.Until, c.OCSP.Until = now.Add(5*day), now.Add(time.Minute)
					}
					list = append(list, c)
				}
				r.Add(Context{CA: list[:1], Chain: list})
			}
			if days, ok := r.DaysUntilFirstExpiring(); days != 5 || !ok {
				t.Errorf("certificate %d of context %d: %d days, %v", j, i, days, ok)
			}
			if s, ok := r.SecondsUntilFirstOCSPExpiring(); s != 60 || !ok {
				t.Errorf("certificate %d of context %d: OCSP in %d s, %v", j, i, s, ok)
			}
		}
	}
}

func TestListKeepsTheOrderOfAddWhenTheFirstIsRemoved(t *testing.T) {
	var r Registry
	first := r.Add(Context{})
	r.Add(Context{Chain: []Certificate{{Path: "b"}}})
	last := r.Add(Context{Chain: []Certificate{{Path: "c"}}})
	first.Remove()
	last.Update(Context{Chain: []Certificate{{Path: "d"}}})
	if list := r.List(); len(list) != 2 || list[0].Chain[0].Path != "b" || list[1].Chain[0].Path != "d" {
		t.Errorf("%+v", list)
	}
}

func TestRegistryWithoutAClockUsesTheTime(t *testing.T) {
	var r Registry
	r.Add(Context{Chain: []Certificate{{Until: time.Now().Add(100*day + 12*time.Hour)}}})
	if days, ok := r.DaysUntilFirstExpiring(); days != 100 || !ok {
		t.Errorf("%d days, %v", days, ok)
	}
}
