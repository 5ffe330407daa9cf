package redact

import "github.com/statsd-admin/statsd-admin/internal/lazyregexp"

// secretWords matches the parts of names that say that a value is secret.
const secretWords = `password|passwd|secret|token|private[-_]?key|api[-_]?key|authorization|cookie|credential`

var (
	secretKey  = lazyregexp.New(`(?i)` + secretWords)
	inlineData = lazyregexp.New(`(?i)inline_?(?:string|bytes)|pkcs_?12|ticket_?keys`)
)

// Key reports whether the name of a setting says that its value is secret.
func Key(name string) bool { return secretKey().MatchString(name) }

// KeyEnd returns the end of the part of s for which [Key] holds, -1 if there is none.
func KeyEnd(s string) int {
	if at := secretKey().FindStringIndex(s); at != nil {
		return at[1]
	}
	return -1
}

// Masked returns a setting for display: [Mark] if its name or its value looks
// secret, and otherwise the value.
func Masked(name, value string) string {
	if value != "" && (Key(name) || LooksSecret(value)) {
		return Mark
	}
	return value
}

// Text returns [Mark] for a text of settings, in any notation, that seems to
// contain a secret, and otherwise the text.
func Text(s string) string {
	if LooksSecret(s) || secretKey().MatchString(s) || inlineData().MatchString(s) {
		return Mark
	}
	return s
}
