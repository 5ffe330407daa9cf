package certs

import (
	"crypto/tls"
	"math/big"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/certinfo"
	"github.com/statsd-admin/statsd-admin/internal/certtest"
	"github.com/statsd-admin/statsd-admin/internal/ocsptest"
)

// staple returns a response for a serial number. Status 0 is good, 1 revoked.
func staple(t testing.TB, serial int64, status int, from, until time.Time) []byte {
	t.Helper()
	return ocsptest.Response(t, ocsptest.Basic(), nil, ocsptest.About{Serial: big.NewInt(serial), Status: status, From: from, Until: until})
}

// TestStaple checks the response that a client receives, and its expiry.
func TestStaple(t *testing.T) {
	dir := t.TempDir()
	from, until := time.Date(2025, 3, 1, 0, 0, 0, 0, time.UTC), time.Date(2025, 3, 1, 1, 0, 0, 0, time.UTC)
	own := certtest.Issue(t, template(0x1d03, until.AddDate(1, 0, 0)), nil)
	files := Files{
		Chain: write(t, filepath.Join(dir, "c.pem"), own.Chain), Key: write(t, filepath.Join(dir, "k.pem"), own.Key),
		OCSPStaple: write(t, filepath.Join(dir, "c.ocsp"), staple(t, 0x1d03, 0, from, until)), MinVersion: tls.VersionTLS13,
	}
	reg := &certinfo.Registry{Now: func() time.Time { return until.Add(-90 * time.Second) }}
	s, err := Load(reg, files)
	if err != nil {
		t.Fatal(err)
	}
	if got := reg.List()[0].Chain[0].OCSP; got == nil || *got != (certinfo.Validity{From: from, Until: until}) {
		t.Errorf("the response holds %+v", got)
	}
	if seconds, any := reg.SecondsUntilFirstOCSPExpiring(); seconds != 90 || !any {
		t.Errorf("%d seconds, %t", seconds, any)
	}
	state := handshake(t, s.Config(), &tls.Config{InsecureSkipVerify: true})
	if state.Version != tls.VersionTLS13 || len(state.OCSPResponse) == 0 {
		t.Errorf("version %x, %d bytes of OCSP response", state.Version, len(state.OCSPResponse))
	}
	if s.Config().MinVersion != tls.VersionTLS13 {
		t.Errorf("lowest version %x", s.Config().MinVersion)
	}
	for want, der := range map[string][]byte{
		"not an OCSP response in DER form":        []byte("canary"),
		"is for another certificate":              staple(t, 0x1d04, 0, from, until),
		"does not report the certificate as good": staple(t, 0x1d03, 1, from, until),
		"not a successful basic one":              {0x30, 3, 0x0a, 1, 3},
	} {
		write(t, files.OCSPStaple, der)
		if err := s.Reload(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%v, want %s", err, want)
		}
	}
	files.OCSPStaple = filepath.Join(dir, "none")
	if _, err := Load(reg, files); err == nil {
		t.Error("a response that is not there is loaded")
	}
}

// handshake returns the connection state of a client.
func handshake(t *testing.T, server, client *tls.Config) tls.ConnectionState {
	t.Helper()
	ln, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		if c, err := ln.Accept(); err == nil {
			_ = c.(*tls.Conn).Handshake() // the client reports the error
			c.Close()
		}
	}()
	c, err := tls.Dial("tcp", ln.Addr().String(), client)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.ConnectionState()
}
