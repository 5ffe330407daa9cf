package redact

import "testing"

func TestRedactText(t *testing.T) {
	for _, s := range []string{"", "node: {id: a}", "admin:\n  address: {}\n", "{keys: 1}"} {
		if got := Text(s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
	for _, s := range []string{"a:\n  private_key:\n    filename: x", `{"privateKey": 1}`, "Password: x", "x: -----BEGIN EC PRIVATE KEY-----",
		"{inlineString: x}", "inline_bytes: |", "pkcs12: {}", "session_ticket_keys: []", "admin: {auth: {tokens: []}}"} {
		if got := Text(s); got != Mark {
			t.Errorf("%q is shown", got)
		}
	}
}

func TestMaskedShowsWhatIsHarmless(t *testing.T) {
	for _, tt := range []struct{ name, value, want string }{
		{"db_password", "hush", Mark}, {"db_password", "", ""}, {"level", "5", "5"}, {"note", "-----BEGIN PRIVATE KEY-----", Mark}, {"API-Key", "x", Mark},
	} {
		if got := Masked(tt.name, tt.value); got != tt.want {
			t.Errorf("%s=%s: %q, want %q", tt.name, tt.value, got, tt.want)
		}
	}
}
