package main

import "testing"

// TestSec_18_OptionsShowNoSecrets: a configuration on the command line is shown
// unless it holds a secret.
func TestSec_18_OptionsShowNoSecrets(t *testing.T) {
	for text, want := range map[string]string{
		"":              "",
		"node: {id: a}": "node: {id: a}",
		"admin: {auth: {tokens_file: /etc/tokens}}":                                                "admin: {auth: {tokens_file: /etc/tokens}}",
		"admin: {auth: {tokens: [{name: a, role: read, sha256: x}]}}":                              "<redacted>",
		"static_resources: {secrets: [{tls_certificate: {private_key: {inline_string: canary}}}]}": "<redacted>",
	} {
		if got := shownOptions(&Options{ConfigYAML: text}).ConfigYAML; got != want {
			t.Errorf("%s is shown as %q", text, got)
		}
	}
}
