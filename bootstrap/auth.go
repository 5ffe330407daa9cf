package bootstrap

import (
	"crypto/tls"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/internal/conftree"
	"github.com/statsd-admin/statsd-admin/internal/redact"
	"github.com/statsd-admin/statsd-admin/server/certs"
	"go.yaml.in/yaml/v4"
)

// AdminAuth holds the roles of clients of the administration port.
type AdminAuth struct {
	admin.Auth
	TokensFile string // lines role:sha256:name
}

// role decodes a role. Errors show it even in a token, unless it is as long as a token.
func role(to *admin.Role) setter {
	const shortest = 16 // of tokens that people use
	known := enum(to, "metrics, read, operate, admin", admin.RoleMetrics, admin.RoleRead, admin.RoleOperate, admin.RoleAdmin)
	return func(d *decoder, n *yaml.Node, path string) {
		d.harmless = len(n.Value) < shortest
		known(d, n, path)
		d.harmless = false
	}
}

func (a *AdminAuth) set(d *decoder, n *yaml.Node, path string) {
	var tokens []admin.Token
	seen := d.message(n, path, []field{
		{"tokens_file", func(d *decoder, n *yaml.Node, path string) {
			inputFile(&a.TokensFile)(d, n, path)
			d.reads(n, path, func() error {
				_, err := admin.ReadTokens(a.TokensFile)
				return err
			})
		}},
		{"tokens", list(&tokens, authToken)},
		{"client_certificates", list(&a.ClientCertificates, certificateRole)},
		{"unix_peers", list(&a.UnixPeers, peerRole)},
		{"open_paths", list(&a.OpenPaths, func(s *string) setter {
			return choice(s, "/ready", "/live", "/stats", "/stats/metrics", "/stats/prometheus", "/metrics")
		})},
	})
	if n.Kind == yaml.MappingNode && seen["tokens_file"] == nil && len(tokens)+len(a.ClientCertificates)+len(a.UnixPeers) == 0 {
		d.errorf(n, path, "no way to authenticate is configured: set tokens_file, tokens, client_certificates or unix_peers")
	}
	a.Tokens = admin.NewTokens(tokens...)
}

func authToken(t *admin.Token) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		seen := d.message(n, path, []field{
			{"name", nonEmpty(&t.Name)},
			{"role", role(&t.Role)},
			{"sha256", func(d *decoder, n *yaml.Node, path string) {
				digest, err := hex.DecodeString(n.Value)
				if n.Kind != yaml.ScalarNode || err != nil || len(digest) != len(t.Digest) {
					// What stands there may be the token itself.
					d.errorf(n, path, "not the SHA-256 digest of a token: 64 hexadecimal digits, as of printf %%s TOKEN | sha256sum")
					return
				}
				t.Digest = [32]byte(digest)
			}},
		})
		d.require(n, path, seen, "name", "role", "sha256")
	}
}

func certificateRole(c *admin.CertificateRole) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		seen := d.message(n, path, []field{
			{"name", func(d *decoder, n *yaml.Node, path string) {
				kind, rest, _ := strings.Cut(n.Value, ":")
				if n.Kind != yaml.ScalarNode || rest == "" || !slices.Contains([]string{"dns", "uri", "ip"}, kind) {
					d.errorf(n, path, "%s is not dns:name, uri:name or ip:address", d.show(n, path))
				} else {
					c.Name = n.Value
				}
			}},
			{"role", role(&c.Role)},
		})
		d.require(n, path, seen, "name", "role")
	}
}

func peerRole(p *admin.PeerRole) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		const most = 1<<32 - 2 // the highest number means no user
		seen := d.message(n, path, []field{
			{"uid", whole(&p.ID, 0, most)},
			{"gid", whole(&p.ID, 0, most)},
			{"role", role(&p.Role)},
		})
		p.Group = d.oneOf(n, path, seen, true, "uid", "gid") == "gid"
		d.require(n, path, seen, "role")
	}
}

func setAdminTLS(t *certs.Files) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		required := true
		seen := d.message(n, path, []field{
			{"certificate_chain", inputFile(&t.Chain)},
			{"private_key", inputFile(&t.Key)},
			{"client_ca", inputFile(&t.ClientCA)},
			{"require_client_certificate", boolean(&required)},
			{"ocsp_staple", inputFile(&t.OCSPStaple)},
			{"tls_minimum_protocol_version", enum(&t.MinVersion, "TLSv1_2, TLSv1_3", tls.VersionTLS12, tls.VersionTLS13)},
		})
		d.readsCertificates(n, path, t)
		t.OptionalClient = !required
		d.require(n, path, seen, "certificate_chain", "private_key")
		if at := seen["require_client_certificate"]; at != nil && required && t.ClientCA == "" {
			d.errorf(at, join(path, "require_client_certificate"), "needs client_ca, the authorities that sign certificates of clients")
		}
	}
}

// checkSecurity reports settings of the port that do not go together.
func (a *Admin) checkSecurity(d *decoder, seen map[string]*yaml.Node, path string) {
	at := func(name string) *yaml.Node { return seen[name] }
	if n := at("tls"); n != nil && a.Address.Pipe != "" {
		d.errorf(n, join(path, "tls"), "only for an address of kind socket_address")
	}
	if a.Auth != nil && len(a.Auth.UnixPeers) > 0 && a.Address.IP.IsValid() {
		d.errorf(at("auth"), join(path, "auth.unix_peers"), "only for an address of kind pipe")
	}
	if a.Auth != nil && len(a.Auth.ClientCertificates) > 0 && (a.TLS == nil || a.TLS.ClientCA == "") {
		d.errorf(at("auth"), join(path, "auth.client_certificates"), "needs tls.client_ca, the authorities that sign certificates of clients")
	}
	if a.TLS != nil && a.TLS.ClientCA != "" && a.TLS.OptionalClient && a.Auth == nil {
		d.errorf(at("tls"), join(path, "tls.require_client_certificate"), "false without auth would admit every client")
	}
	if seen["address"] != nil { // if it is wrong, it has been reported
		return
	}
	for name, n := range seen {
		if name != "profile_path" && name != "address" {
			d.warnf(n, join(path, name), "has no effect without admin.address")
		}
	}
}

// Shown returns the form of a configuration text for display: text itself, or
// [redacted] if it contains a secret.
func Shown(text string) string {
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(text), &root); err != nil || hasSecret(&root) {
		return redact.Mark
	}
	return text
}

// isSecret reports whether n, the value of a field that holds secrets, is one
// and not the place where one is kept.
func isSecret(n *yaml.Node) bool {
	switch n.Kind {
	case yaml.ScalarNode:
		return !empty(n) && !strings.HasPrefix(n.Value, "/")
	case yaml.AliasNode:
		return true
	}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode {
			place := []string{"filename", "environment_variable", "watched_directory"}
			if i%2 == 0 || slices.Contains(place, conftree.SnakeCase(n.Content[i-1].Value)) {
				continue
			}
		}
		if isSecret(child) {
			return true
		}
	}
	return false
}

// hasSecret reports whether n contains a value that error texts mask.
func hasSecret(n *yaml.Node) bool {
	if n.Kind == yaml.ScalarNode {
		return redact.LooksSecret(n.Value)
	}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 && redact.Path(conftree.SnakeCase(n.Content[i-1].Value)) && isSecret(child) {
			return true
		}
		if hasSecret(child) {
			return true
		}
	}
	return false
}
