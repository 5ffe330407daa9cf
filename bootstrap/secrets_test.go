package bootstrap

import (
	"strings"
	"testing"
)

// TestMistakesInSecrets finds all of them, says where each is, and shows no key.
func TestMistakesInSecrets(t *testing.T) {
	const text = `static_resources:
  secrets:
  - name: a
    tls_certificate: {certificate_chain: {filename: /no/such/file}, private_key: {inline_string: hush}}
  - {name: b}
  - {name: c, tls_certificate: {private_key: {inline_strin: hush}}}
  - {name: d, validation_context: {}}
  - {name: d, validation_context: {}}
  - {name: d, tls_certificate: {}}
`
	_, err := Parse("a.yaml", []byte(text), Options{})
	if err == nil {
		t.Fatal("accepted")
	}
	want := []string{
		"bootstrap: 4 errors in the configuration:",
		`  a.yaml:4:23: static_resources.secrets[0].tls_certificate.certificate_chain: secret "a": "/no/such/file": no such file or directory`,
		`  a.yaml:5:5: static_resources.secrets[1]: secret "b": needs one of tls_certificate, session_ticket_keys, validation_context, generic_secret`,
		`  a.yaml:6:47: static_resources.secrets[2].tls_certificate.private_key.inline_strin: secret "c": unknown field of DataSource`,
		`  a.yaml:8:6: static_resources.secrets.name: secret "d": "d" is already used by another validation_context`,
	}
	got := strings.Split(err.Error(), "\n")
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Errorf("missing: %s", want[i])
		case i >= len(want):
			t.Errorf("too much: %s", got[i])
		case got[i] != want[i]:
			t.Errorf("got  %s\nwant %s", got[i], want[i])
		}
	}
	if strings.Contains(err.Error(), "hush") {
		t.Error("the error shows a key")
	}
	if _, err := Parse("a.yaml", []byte("static_resources: {secrets: {name: a}}"), Options{}); err == nil || !strings.Contains(err.Error(), "static_resources.secrets: ") {
		t.Errorf("error %v", err)
	}
}
