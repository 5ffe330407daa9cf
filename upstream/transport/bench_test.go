package transport_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"testing"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/transport"
)

// BenchmarkRotation delivers new versions of a secret that 1,000 contexts share, next
// to a second secret, which stays.
func BenchmarkRotation(b *testing.B) {
	const contexts = 1000
	ca := authorityFor(b, "ca", 1, nil)
	var certs [2]*config.Secret
	for i := range certs {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			b.Fatal(err)
		}
		certs[i] = certSecret(ca.issueFor(b, k, int64(i+2), nil))
	}
	for _, bm := range []struct {
		name     string
		versions [2]*config.Secret
	}{{"certificate", certs}, {"authority", [2]*config.Secret{caSecret(ca), caSecret(ca)}}} {
		b.Run(bm.name, func(b *testing.B) {
			var d deliverer
			f := transport.New(transport.Config{Now: start, Secrets: &d})
			scope := store.New(store.Options{}).Scope("cluster.c")
			for range contexts {
				x, err := f.Dialer(cluster(trust(ca, bySecrets)), scope)
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(x.Close)
				x.Follow(func() {})
			}
			for _, s := range []*config.Secret{certs[0], caSecret(ca)} {
				if err := d.deliver(s); err != nil {
					b.Fatal(err)
				}
			}
			i := 0
			for b.Loop() {
				i++
				if err := d.deliver(bm.versions[i%2]); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/contexts, "ns/context")
		})
	}
}
