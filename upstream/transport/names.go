package transport

import (
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/statsd-admin/statsd-admin/match"
	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// sanCheck is one allowed alternative name.
type sanCheck struct {
	kind  config.SANType
	text  match.Matcher
	exact string // of an exact match; certificates may have a wildcard for it
}

// sanChecks compiles the configured names.
func sanChecks(list []config.SAN, at string) ([]sanCheck, error) {
	var out []sanCheck
	for i, s := range list {
		field := fmt.Sprintf("%s.match_typed_subject_alt_names[%d]", at, i)
		if s.Type == config.AnySAN {
			field = fmt.Sprintf("%s.match_subject_alt_names[%d]", at, i)
		}
		if s.Type == config.OtherNameSAN {
			return nil, fmt.Errorf("%s.san_type: OTHER_NAME is not supported; use EMAIL, DNS, URI or IP_ADDRESS", field)
		}
		kinds := map[config.MatchKind]match.Kind{
			config.MatchExact: match.KindExact, config.MatchPrefix: match.KindPrefix, config.MatchSuffix: match.KindSuffix,
			config.MatchContains: match.KindContains, config.MatchRegex: match.KindRegex,
		}
		kind, ok := kinds[s.Matcher.Kind]
		if !ok {
			return nil, fmt.Errorf("%s.matcher: custom matchers are not supported", field)
		}
		m, err := match.New(kind, s.Matcher.Pattern, s.Matcher.IgnoreCase)
		if err != nil {
			return nil, fmt.Errorf("%s.matcher: %w", field, err)
		}
		c := sanCheck{kind: s.Type, text: m}
		if kind == match.KindExact {
			c.exact = s.Matcher.Pattern
		}
		out = append(out, c)
	}
	return out, nil
}

// match reports whether a certificate has the name.
func (c *sanCheck) match(cert *x509.Certificate) bool {
	is := func(t config.SANType) bool { return c.kind == config.AnySAN || c.kind == t }
	return is(config.DNSSAN) && slices.ContainsFunc(cert.DNSNames, func(name string) bool {
		return c.text.Match(name) || c.exact != "" && matchDNS(name, c.exact)
	}) ||
		is(config.URISAN) && slices.ContainsFunc(cert.URIs, func(u *url.URL) bool { return c.text.Match(u.String()) }) ||
		is(config.EmailSAN) && slices.ContainsFunc(cert.EmailAddresses, c.text.Match) ||
		is(config.IPSAN) && slices.ContainsFunc(cert.IPAddresses, func(ip net.IP) bool { return c.text.Match(ip.String()) })
}

// hasName reports whether a certificate has any name.
func hasName(cert *x509.Certificate, name string) bool {
	if ip, err := netip.ParseAddr(name); err == nil {
		return slices.ContainsFunc(cert.IPAddresses, func(have net.IP) bool {
			a, ok := netip.AddrFromSlice(have)
			return ok && a.Unmap() == ip.Unmap()
		})
	}
	return slices.ContainsFunc(cert.URIs, func(u *url.URL) bool { return u.String() == name }) ||
		slices.ContainsFunc(cert.DNSNames, func(pattern string) bool { return matchDNS(pattern, name) })
}

// matchDNS reports whether the name in a certificate, which may start with a wildcard
// for one label, matches name.
func matchDNS(pattern, name string) bool {
	if strings.EqualFold(pattern, name) {
		return true
	}
	parent, ok := strings.CutPrefix(pattern, "*.")
	if !ok {
		return false
	}
	label, rest, ok := strings.Cut(name, ".")
	return ok && label != "" && strings.EqualFold(rest, parent)
}
