package certinfo

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/certtest"
)

const day = 24 * time.Hour

func TestSerialNumbers(t *testing.T) {
	big1, _ := new(big.Int).SetString("00ab00ffffffffffffffffffffffffffffffff", 16)
	for want, n := range map[string]*big.Int{"0": big.NewInt(0), "7": big.NewInt(7), "4f1c9a0be2": big.NewInt(0x4f1c9a0be2), "ab00ffffffffffffffffffffffffffffffff": big1} {
		if got := Describe("", &x509.Certificate{SerialNumber: n}).SerialNumber; got != want {
			t.Errorf("serial %s, want %s", got, want)
		}
	}
}

func TestDaysLeft(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for left, want := range map[time.Duration]uint64{
		-time.Hour: 0, 0: 0, day - 1: 0, day: 1, 44*day + 5*time.Hour: 44, -1000 * day: 0,
	} {
		for _, shift := range []time.Duration{0, 1, time.Second - 1} {
			c := Certificate{Until: now.Add(shift + left)}
			if got := c.DaysLeft(now.Add(shift)); got != want {
				t.Errorf("%v left: %d days, want %d", left, got, want)
			}
		}
	}
	c := Certificate{Until: now.AddDate(400, 0, 0)}
	if got := c.DaysLeft(now); got != 146097 {
		t.Errorf("%d days in 400 years", got)
	}
}

// TestParsePEM expects the certificates in order, without blocks of other types.
func TestParsePEM(t *testing.T) {
	block := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	cert := func(serial int64) string {
		return string(certtest.Issue(t, &x509.Certificate{SerialNumber: big.NewInt(serial)}, nil).Chain)
	}
	one, two, other := cert(1), cert(2), block("PRIVATE KEY", []byte("x"))
	for _, tt := range []struct{ text, want string }{
		{one, "[1] <nil>"},
		{"text\n" + two + other + one + "text\n", "[2 1] <nil>"},
		{"", "[] no certificate in PEM form"},
		{other, "[] no certificate in PEM form"},
		{one + other + block("CERTIFICATE", []byte("x")), "[] certificate 2: x509: malformed certificate"},
	} {
		list, err := ParsePEM([]byte(tt.text))
		serials := make([]*big.Int, len(list))
		for i, c := range list {
			serials[i] = c.SerialNumber
		}
		if got := fmt.Sprint(serials, " ", err); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.text, got, tt.want)
		}
	}
}

func TestRegistry(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := &Registry{Now: func() time.Time { return now }}
	check := func(want uint64, wantOK bool) {
		t.Helper()
		if got, ok := r.DaysUntilFirstExpiring(); got != want || ok != wantOK {
			t.Errorf("%d days, %v; want %d, %v", got, ok, want, wantOK)
		}
	}
	check(0, false)
	empty := r.Add(Context{})
	check(0, false)
	first := r.Add(Context{CA: []Certificate{{Until: now.Add(50 * day)}}, Chain: []Certificate{{Until: now.Add(70 * day)}}})
	check(50, true)
	second := r.Add(Context{Chain: []Certificate{{Until: now.Add(20 * day), OCSP: &Validity{Until: now.Add(90 * time.Second)}}}})
	check(20, true)
	if s, ok := r.SecondsUntilFirstOCSPExpiring(); s != 90 || !ok {
		t.Errorf("OCSP %d, %v", s, ok)
	}
	now = now.Add(10 * day)
	check(10, true)
	if s, ok := r.SecondsUntilFirstOCSPExpiring(); s != 0 || !ok {
		t.Errorf("OCSP %d, %v", s, ok)
	}
	if got := len(r.List()); got != 3 {
		t.Errorf("%d contexts", got)
	}
	second.Update(Context{Chain: []Certificate{{Until: now.Add(30 * day)}}})
	check(30, true)
	second.Remove()
	second.Remove()
	empty.Remove()
	check(40, true)
	first.Remove()
	check(0, false)
	if _, ok := r.SecondsUntilFirstOCSPExpiring(); ok || len(r.List()) != 0 {
		t.Error("registry is not empty")
	}
}

func TestNilRegistryKeepsNothing(t *testing.T) {
	h := (*Registry)(nil).Add(Context{})
	h.Update(Context{})
	h.Remove()
}

func ExampleRegistry() {
	now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	reg := &Registry{Now: func() time.Time { return now }}
	h := reg.Add(Context{Chain: []Certificate{{Path: "edge.pem", Until: now.AddDate(0, 0, 30)}}})
	fmt.Println(reg.DaysUntilFirstExpiring())
	h.Remove()
	fmt.Println(reg.DaysUntilFirstExpiring())
	// Output:
	// 30 true
	// 0 false
}
