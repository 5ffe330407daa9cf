// Package redact recognizes secrets in texts whose definition does not mark them,
// and holds the mark that replaces them.
package redact

import (
	"regexp"
	"strings"
)

// Mark replaces a secret.
const Mark = "[redacted]"

var (
	privateKey  = regexp.MustCompile(`-----(?:BEGIN|END) [A-Z0-9 ]*PRIVATE KEY-----`)
	signedToken = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`)
)

// LooksSecret reports whether s contains a private key or a signed token, or has the
// form of such a token.
func LooksSecret(s string) bool {
	return strings.Contains(s, "PRIVATE KEY-----") && privateKey.MatchString(s) ||
		strings.HasPrefix(s, "eyJ") && strings.Count(s, ".") == 2 ||
		strings.Contains(s, "eyJ") && signedToken.MatchString(s)
}
