package transport

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// cipher is a cipher suite of TLS 1.2 or older with its name in configurations.
type cipher struct {
	name string
	id   uint16
}

// ciphers lists the configurable suites.
func ciphers() []cipher {
	return []cipher{
		{"ECDHE-ECDSA-AES128-GCM-SHA256", tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
		{"ECDHE-ECDSA-CHACHA20-POLY1305", tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256},
		{"ECDHE-RSA-AES128-GCM-SHA256", tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256},
		{"ECDHE-RSA-CHACHA20-POLY1305", tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256},
		{"ECDHE-ECDSA-AES256-GCM-SHA384", tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384},
		{"ECDHE-RSA-AES256-GCM-SHA384", tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384},
		// Only offered on request.
		{"ECDHE-ECDSA-AES128-SHA", tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA},
		{"ECDHE-RSA-AES128-SHA", tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA},
		{"AES128-GCM-SHA256", tls.TLS_RSA_WITH_AES_128_GCM_SHA256},
		{"AES128-SHA", tls.TLS_RSA_WITH_AES_128_CBC_SHA},
		{"ECDHE-ECDSA-AES256-SHA", tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA},
		{"ECDHE-RSA-AES256-SHA", tls.TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA},
		{"AES256-GCM-SHA384", tls.TLS_RSA_WITH_AES_256_GCM_SHA384},
		{"AES256-SHA", tls.TLS_RSA_WITH_AES_256_CBC_SHA},
	}
}

// offeredByDefault is the number of ciphers offered by default.
const offeredByDefault = 6

// cipherName returns the name of a suite in configurations and statistics.
func cipherName(id uint16) string {
	for _, c := range ciphers() {
		if c.id == id {
			return c.name
		}
	}
	return tls.CipherSuiteName(id) // those of TLS 1.3
}

// curve is a named group for the key exchange.
type curve struct {
	name string
	id   tls.CurveID
}

func curves() []curve {
	return []curve{
		{"X25519", tls.X25519}, {"P-256", tls.CurveP256}, {"P-384", tls.CurveP384}, {"P-521", tls.CurveP521},
		{"X25519MLKEM768", tls.X25519MLKEM768},
	}
}

func curveName(id tls.CurveID) string {
	for _, c := range curves() {
		if c.id == id {
			return c.name
		}
	}
	return id.String()
}

// baseConfig returns the configuration that all connections of a context share,
// without any data from files.
func baseConfig(c *config.TLS, path string) (*tls.Config, error) {
	at := path + ".common_tls_context.tls_params"
	t := &tls.Config{
		// VerifyConnection checks the peer by the rules of the resource, because
		// crypto/tls would always require a matching name.
		InsecureSkipVerify: true,
		MinVersion:         version(c.MinVersion, tls.VersionTLS12),
		MaxVersion:         version(c.MaxVersion, tls.VersionTLS13),
		NextProtos:         slices.Clone(c.ALPN),
	}
	if t.MinVersion > t.MaxVersion {
		return nil, fmt.Errorf("%s.tls_minimum_protocol_version: %s is above the maximum %s", at,
			tls.VersionName(t.MinVersion), tls.VersionName(t.MaxVersion))
	}
	var err error
	if t.CipherSuites, err = cipherSuites(c.CipherSuites, at+".cipher_suites"); err != nil {
		return nil, err
	}
	for i, name := range c.Curves {
		j := slices.IndexFunc(curves(), func(k curve) bool { return k.name == name })
		if j < 0 {
			return nil, fmt.Errorf("%s.ecdh_curves[%d]: %q is not one of %s", at, i, name,
				names(curves(), func(k curve) string { return k.name }))
		}
		t.CurvePreferences = append(t.CurvePreferences, curves()[j].id)
	}
	if c.AllowRenegotiation {
		t.Renegotiation = tls.RenegotiateFreelyAsClient
	}
	return t, nil
}

func version(v config.TLSVersion, auto uint16) uint16 {
	switch v {
	case config.TLS10:
		return tls.VersionTLS10
	case config.TLS11:
		return tls.VersionTLS11
	case config.TLS12:
		return tls.VersionTLS12
	case config.TLS13:
		return tls.VersionTLS13
	}
	return auto
}

// cipherSuites parses a list of suites. Entries can hold several suites separated by
// ":", and groups of equal preference as [a|b]; both sides then choose the best
// common suite.
func cipherSuites(list []string, at string) ([]uint16, error) {
	known := ciphers()
	var out []uint16
	if len(list) == 0 {
		for _, c := range known[:offeredByDefault] {
			out = append(out, c.id)
		}
		return out, nil
	}
	for i, entry := range list {
		for group := range strings.SplitSeq(entry, ":") {
			if in, ok := strings.CutPrefix(group, "["); ok {
				if in, ok = strings.CutSuffix(in, "]"); ok {
					group = in
				}
			}
			for name := range strings.SplitSeq(group, "|") {
				j := slices.IndexFunc(known, func(c cipher) bool { return c.name == name || tls.CipherSuiteName(c.id) == name })
				if j < 0 {
					return nil, fmt.Errorf("%s[%d]: %q is not one of %s", at, i, name, names(known, func(c cipher) string { return c.name }))
				}
				out = append(out, known[j].id)
			}
		}
	}
	return out, nil
}

func names[T any](list []T, name func(T) string) string {
	out := make([]string, len(list))
	for i, x := range list {
		out[i] = name(x)
	}
	return strings.Join(out, ", ")
}
