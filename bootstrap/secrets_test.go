package bootstrap

import (
	"fmt"
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
		`  a.yaml:6:47: static_resources.secrets[2].tls_certificate.private_key.inline_strin: secret "c": unknown field of DataSource; allowed: environment_variable, filename, inline_bytes, inline_string, watched_directory`,
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

// TestMistakesShowNoPartOfASecret puts a secret in the position of a key, a tag, an
// anchor or a word.
func TestMistakesShowNoPartOfASecret(t *testing.T) {
	const (
		yamlText = "static_resources: {secrets: [{name: a, tls_certificate: {private_key: %s}}]}"
		auth     = "admin: {auth: {tokens: %s}}"
		jsonText = `{"staticResources": {"secrets": [{"name": "a", "tlsCertificate": {"privateKey": %s}}]}}`
		protoBuf = `static_resources { secrets { name: "a" tls_certificate { private_key %s } } }`
	)
	for _, tt := range []struct{ file, around, text, want string }{
		{"a.yaml", yamlText, "{inline_string: *hush }", "a.yaml:1:87: not valid YAML: unknown anchor"},
		{"a.yaml", yamlText, "{inline_string: !hush }", "a.yaml:1:87: tag [redacted] is not supported"},
		{"a.yaml", yamlText, "&hush {a: *hush }", "a.yaml:1:81: alias [redacted] contains itself"},
		{"a.yaml", yamlText, "{hush: 1, hush: 2}", "a.yaml:1:81: duplicate key [redacted], first used in line 1"},
		{"a.yaml", yamlText, "{inline_string: {hush}}", "a.yaml:1:"},
		{"a.yaml", auth, "{hush: 1}", "a.yaml:1:24: "},
		{"a.yaml", auth, "[{hush: 1}]", "a.yaml:1:26: admin.auth.tokens[0].[redacted]: unknown field"},
		{"a.yaml", auth, "[{sha: 1}]", "admin.auth.tokens[0].sha: unknown field; allowed: "},
		{"a.yaml", auth, "[{roel: read}]", "admin.auth.tokens[0].roel: unknown field; did you mean role?"},
		{"a.json", jsonText, `{"hush": 1, "hush": 2}`, "a.json:1:93: duplicate key [redacted], first used in line 1"},
		{"a.json", jsonText, `{"inlineString": hush}`, "a.json:1:98: not valid JSON"},
		{"a.pb_text", protoBuf, "{ inline_string: hush }", "a.pb_text:1:87: invalid value for string type"},
		{"a.pb_text", protoBuf, "{ hush }", "a.pb_text:1:72: unknown field"},
		{"a.pb_text", protoBuf, ": hush", "a.pb_text:1:72: unexpected token"},
		{"a.pb_text", protoBuf, "{ [hush]: 1 }", "a.pb_text:1:72: unknown field"},
		{"a.pb_text", `stats_sinks { typed_config { [hush/x] { } } }`, "", "a.pb_text:1:30: unable to resolve message"},
		{"a.pb_text", protoBuf, `{ "hush" }`, "a.pb_text:1:72: "},
		{"a.pb_text", protoBuf, `{ inline_string: "\hush" }`, "a.pb_text:1:"},
	} {
		for _, lenient := range []bool{false, true} {
			c, err := Parse(tt.file, []byte(strings.Replace(tt.around, "%s", tt.text, 1)), Options{AllowUnknownFields: lenient})
			said := fmt.Sprint(err)
			if c != nil {
				said = strings.Join(c.UnknownFields, "\n")
			}
			if !lenient && !strings.Contains(said, tt.want) {
				t.Errorf("%s: %s: got %s\nwant %s", tt.file, tt.text, said, tt.want)
			}
			if strings.Contains(said, "hush") {
				t.Errorf("%s: %s (lenient %t): the error shows a part of the secret: %s", tt.file, tt.text, lenient, said)
			}
		}
	}
	// Elsewhere names help.
	for text, want := range map[string]string{
		"node: {id: a, id: b}": `duplicate key "id"`, "node: {id: !x a}": `tag "!x"`, "node: &x {id: *x}": `alias "x"`, "nod: {}": "nod: unknown field",
	} {
		if _, err := Parse("a.yaml", []byte(text), Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}
