package decode_test

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/statsd-admin/statsd-admin/internal/golden"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

const secretURL = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"

func TestSecretsAreCompiled(t *testing.T) {
	tests := []struct {
		name, text, url string
		want            config.Secret
	}{
		{"certificate", "name: s\ntls_certificate: {certificate_chain: {filename: /c}, private_key: {inline_string: k}, ocsp_staple: {inline_bytes: YQ==}, watched_directory: {path: /d}}\n", secretURL,
			config.Secret{Name: "s", Kind: config.CertificateSecret, Certificate: &config.Certificate{
				Chain: config.Data{Kind: config.DataFile, Name: "/c"}, PrivateKey: config.Data{Kind: config.DataInline, Inline: "k"},
				OCSPStaple: config.Data{Kind: config.DataInline, Inline: "a"}, WatchedDirectory: "/d",
			}}},
		{"json", `{"name":"s","validationContext":{"trustedCa":{"environmentVariable":"CA"},"maxVerifyDepth":3}}`, secretURL,
			config.Secret{Name: "s", Kind: config.ValidationSecret, Validation: &config.Validation{
				TrustedCA: config.Data{Kind: config.DataEnvironment, Name: "CA"}, MaxVerifyDepth: 3,
			}}},
		{"old-form", "name: s\nvalidation_context: {trusted_ca: {filename: /ca}, verify_subject_alt_name: [a]}\n", "type.googleapis.com/envoy.api.v2.auth.Secret",
			config.Secret{Name: "s", Kind: config.ValidationSecret, Validation: &config.Validation{
				TrustedCA: config.Data{Kind: config.DataFile, Name: "/ca"}, MaxVerifyDepth: 100,
				SANs: []config.SAN{{Matcher: config.StringMatcher{Kind: config.MatchExact, Pattern: "a"}}}, UntypedSANs: true,
			}}},
		{"keys", "name: s\nsession_ticket_keys: {keys: [{filename: /k}]}\n", secretURL, config.Secret{Name: "s"}},
		{"generic", "name: s\ngeneric_secret: {secret: {filename: /k}}\n", secretURL, config.Secret{Name: "s"}},
		{"unread", "name: s\nvalidation_context: {trusted_ca: {filename: /ca}, require_signed_certificate_timestamp: true}\n", secretURL,
			config.Secret{Name: "s", Kind: config.ValidationSecret, Unread: []string{"validation_context.require_signed_certificate_timestamp"}, Validation: &config.Validation{
				TrustedCA: config.Data{Kind: config.DataFile, Name: "/ca"}, MaxVerifyDepth: 100,
			}}},
	}
	d := newDecoder()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := d.SecretText("s.yaml", []byte(tt.text), config.FormUnknown)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(p.Secret, &tt.want, compare); diff != "" {
				t.Errorf("secret\n%s", diff)
			}
			if p.TypeURL() != tt.url {
				t.Errorf("type %s, want %s", p.TypeURL(), tt.url)
			}
			again, err := d.SecretWire(p.TypeURL(), p.Any().Value, 0)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(p.Secret, again.Secret, compare); diff != "" || !proto.Equal(p.Message(), again.Message()) {
				t.Errorf("the bytes hold something else\n%s", diff)
			}
		})
	}
}

func TestSecretsInResponses(t *testing.T) {
	d := newDecoder()
	_, list, err := d.ResponseText("sds.yaml", []byte(`resources:
- {"@type": `+secretURL+`, name: a, validation_context: {trusted_ca: {filename: /ca}}}
- {"@type": type.googleapis.com/envoy.api.v2.auth.Secret, name: b, tls_certificate: {}}
- {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: c}
- {"@type": `+secretURL+`, name: d, validation_context: {trusted_ca: {file: /ca}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for i := range list {
		p, err := d.SecretResource(&list[i])
		if err != nil {
			fmt.Fprintf(&got, "%s: %v\n", list[i].Name, err)
			continue
		}
		fmt.Fprintf(&got, "%s: %s %s\n", list[i].Name, p.Secret.Name, p.Secret.Kind)
	}
	golden.Check(t, "secrets-response", []byte(got.String()))
}

// TestSecretMistakes plants a key in each text: no error may show it.
func TestSecretMistakes(t *testing.T) {
	cert, key := pair(t)
	_, other := pair(t)
	files := map[string][]byte{"/cert.pem": cert, "/key.pem": key, "/other.pem": other, "/empty.pem": nil}
	o := options()
	o.ReadFile = func(name string) ([]byte, error) {
		if b, ok := files[name]; ok {
			return b, nil
		}
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	d := decode.NewDecoder(o)
	var got strings.Builder
	for _, text := range []string{
		"tls_certificate: {private_key: {inline_string: hush}}",
		"name: s",
		"name: s\ntls_certificate: {private_key: {inline_string: [hush]}}",
		"name: s\ntls_certificate: {private_key: {inline_bytes: '%hush'}}",
		"name: s\ntls_certificate: hush",
		"name: s\ntls_certificate: {private_key: {string: hush}}",
		"name: s\ntls_certificate: {private_key: {inline: hush, inline_stringhush: x}}",
		"name: s\ntls_certificate: {private_key: {inline_string:hush}}",
		"name: s\ntls_certificate: {private_key: {hush: , hush: }}",
		"name: s\ntls_certificate: {private_key: {inline_string: !hush }}",
		"name: s\ntls_certificate: {private_key: {inline_string: *hush }}",
		"name: s\ntls_certificate: {password: {inline_string: &hush }, private_key: *private_key}",
		"name: s\ngeneric_secret: private_key hush",
		"name: s\nsession_ticket_keys: {keys: [private_key hush]}",
		"name: s\ntls_certificate: {certificate_chain: {filename: /cert.pem}, private_key: {filename: /other.pem}}",
		"name: s\ntls_certificate: {certificate_chain: {filename: /cert.pem}, private_key: {inline_string: hush}}",
		"name: s\ntls_certificate: {certificate_chain: {filename: /none.pem}, private_key: {inline_string: hush}}",
		"name: s\ntls_certificate: {certificate_chain: {filename: /cert.pem}, private_key: {filename: /key.pem}}",
		"name: s\nvalidation_context: {trusted_ca: {filename: /empty.pem}, verify_certificate_hash: [x], match_subject_alt_names: [{safe_regex: {regex: '('}}]}",
		"name: s\nvalidation_context: {}\ngeneric_secret: {secret: {inline_string: hush}}",
		"name: s\nvalidation_context: {verify_subject_alt_name: [a], match_typed_subject_alt_names: []}",
		"name: [",
		"hush",
	} {
		_, err := d.SecretText("s.yaml", []byte(text), config.FormUnknown)
		fmt.Fprintf(&got, "%s\n%v\n\n", text, err)
		if err != nil {
			checkRefused(t, err)
			if strings.Contains(err.Error(), "hush") && text != "hush" {
				t.Errorf("%q: the error shows the key: %v", text, err)
			}
		}
	}
	golden.Check(t, "secrets-errors", []byte(got.String()))
}

func TestUnknownFieldsOfSecretsAreWarnedOf(t *testing.T) {
	o := options()
	o.AllowUnknown = true
	p, err := decode.NewDecoder(o).SecretText("s.yaml", []byte("name: s\ntls_certificate: {}\nnam: 1"), config.FormV3)
	if err != nil {
		t.Fatal(err)
	}
	const want = `s.yaml:3:1: secret "s": nam: unknown field of Secret`
	if got := p.Warnings(); len(got) != 1 || got[0].Error() != want {
		t.Errorf("%v, want %s", got, want)
	}
}

func TestSecretNames(t *testing.T) {
	d := newDecoder()
	var list []*decode.ParsedSecret
	for _, text := range []string{"name: a\ntls_certificate: {}", "name: a\nvalidation_context: {}", "\nname: a\ntls_certificate: {}", "name: a\ngeneric_secret: {}", "name: a\ngeneric_secret: {}"} {
		p, err := d.SecretText("s.yaml", []byte(text), config.FormV3)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	const want = `s.yaml:2:1: secret "a": name: "a" is already used by another tls_certificate`
	if err := decode.CheckSecretNames(list); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if err := decode.CheckSecretNames(list[:2]); err != nil {
		t.Error(err)
	}
}

func TestValidationsAreMerged(t *testing.T) {
	file := func(name string) config.Data { return config.Data{Kind: config.DataFile, Name: name} }
	exact := func(text string) []config.SAN {
		return []config.SAN{{Matcher: config.StringMatcher{Kind: config.MatchExact, Pattern: text}}}
	}
	base := config.Validation{
		TrustedCA: file("/base"), CRL: file("/crl"), MaxVerifyDepth: 5, SPKI: []string{"a"}, Hashes: []string{"h"}, SANs: exact("x"), AllowExpired: true, WatchedDirectory: "/b",
	}
	over := config.Validation{
		TrustedCA: file("/over"), MaxVerifyDepth: 100, SPKI: []string{"b"}, SANs: exact("y"), CRLOfLeafOnly: true, AcceptUntrusted: true, SystemRoots: true,
	}
	untyped := config.Validation{SANs: exact("u"), UntypedSANs: true, MaxVerifyDepth: 7, CRL: file("/new"), WatchedDirectory: "/o", Hashes: []string{"i"}}
	tests := []struct {
		name   string
		v, top *config.Validation
		want   *config.Validation
	}{
		{"none", nil, nil, nil},
		{"base-alone", &base, nil, &base},
		{"top-alone", nil, &over, &over},
		{"both", &base, &over, &config.Validation{
			TrustedCA: file("/over"), CRL: file("/crl"), MaxVerifyDepth: 5, SPKI: []string{"a", "b"}, Hashes: []string{"h"}, SANs: append(exact("x"), exact("y")...),
			AllowExpired: true, WatchedDirectory: "/b", CRLOfLeafOnly: true, AcceptUntrusted: true, SystemRoots: true,
		}},
		{"typed-names-win", &base, &untyped, &config.Validation{
			TrustedCA: file("/base"), CRL: file("/new"), MaxVerifyDepth: 7, SPKI: []string{"a"}, Hashes: []string{"h", "i"}, SANs: exact("x"),
			AllowExpired: true, WatchedDirectory: "/o",
		}},
		{"typed-names-win-on-top", &untyped, &over, &config.Validation{
			TrustedCA: file("/over"), CRL: file("/new"), MaxVerifyDepth: 7, SPKI: []string{"b"}, Hashes: []string{"i"}, SANs: exact("y"),
			WatchedDirectory: "/o", CRLOfLeafOnly: true, AcceptUntrusted: true, SystemRoots: true,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.v.Merge(tt.top), tt.want, compare); diff != "" {
				t.Error(diff)
			}
		})
	}
	if len(base.SPKI) != 1 || len(over.SANs) != 1 {
		t.Errorf("merged parts were changed: %+v, %+v", base, over)
	}
}

// FuzzSecretProto checks that no bytes cause a panic, that errors are typed and show
// no inline data, and that an accepted secret compiles to the same values from its
// wire bytes.
func FuzzSecretProto(f *testing.F) {
	d := newDecoder()
	for _, s := range []string{
		"name: s\ntls_certificate: {certificate_chain: {filename: /c}, private_key: {inline_string: hush}, password: {inline_bytes: YQ==}}\n",
		"name: s\nvalidation_context: {trusted_ca: {filename: /ca}, match_subject_alt_names: [{safe_regex: {regex: a.*}}], max_verify_depth: 1}\n",
		"name: s\nvalidation_context: {trusted_ca: {filename: /ca}, verify_subject_alt_name: [a]}\n",
		"name: s\nsession_ticket_keys: {keys: [{filename: /k}]}\n",
		"name: s\ngeneric_secret: {secret: {environment_variable: K}}\n",
	} {
		p, err := d.SecretText("", []byte(s), config.FormUnknown)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(p.Any().Value, strings.Contains(p.TypeURL(), "v2"))
	}
	f.Fuzz(func(t *testing.T, value []byte, old bool) {
		url := secretURL
		if old {
			url = "type.googleapis.com/envoy.api.v2.auth.Secret"
		}
		p, err := d.SecretWire(url, value, 0)
		if err != nil {
			checkRefused(t, err)
			return
		}
		again, err := d.SecretWire(url, p.Any().Value, 0)
		if err != nil {
			t.Fatalf("the bytes of an accepted message are refused: %v", err)
		}
		if diff := cmp.Diff(p.Secret, again.Secret, fuzzCompare); diff != "" {
			t.Fatalf("the bytes compile to something else\n%s", diff)
		}
		s := p.Secret
		if s.Name == "" || (s.Certificate != nil) != (s.Kind == config.CertificateSecret) || (s.Validation != nil) != (s.Kind == config.ValidationSecret) {
			t.Fatalf("secret %+v", s)
		}
	})
}
