// Package redact recognizes secrets in texts whose definition does not mark them,
// and holds the mark that replaces them.
package redact

import (
	"strings"

	"github.com/statsd-admin/statsd-admin/internal/lazyregexp"
)

// Mark replaces a secret.
const Mark = "[redacted]"

var (
	privateKey  = lazyregexp.New(`-----(?:BEGIN|END) [A-Z0-9 ]*PRIVATE KEY-----`)
	signedToken = lazyregexp.New(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`)
	// A password can contain "/" and "@", but no "/" behind digits alone, which are a port.
	userInfo    = lazyregexp.New(`://(?:[^/\s:@"\[]*:[0-9]*[^/\s@"0-9][^\s"]*|[^/\s:@"]*:[^/\s"]+)@`)
	secretQuery = lazyregexp.New(`[?&][^=&#\s]*(?i:` + secretWords + `)[^=&#\s]*=[^&#\s]`)
	bearer      = lazyregexp.New(`(?i)\b(bearer +)[A-Za-z0-9._~+/-]{16,}=*`)
)

// LooksSecret reports whether s contains a private key, a signed token, a bearer token,
// or a URL with a password or with a parameter that [Key] recognizes, or has the form of
// a signed token.
func LooksSecret(s string) bool {
	return strings.Contains(s, "PRIVATE KEY-----") && privateKey().MatchString(s) ||
		strings.HasPrefix(s, "eyJ") && strings.Count(s, ".") == 2 ||
		strings.Contains(s, "eyJ") && signedToken().MatchString(s) ||
		strings.Contains(s, "://") && strings.Contains(s, "@") && userInfo().MatchString(s) ||
		strings.ContainsAny(s, "?&") && strings.Contains(s, "=") && secretQuery().MatchString(s) ||
		strings.Contains(s, " ") && bearer().MatchString(s)
}

// fields are the names of fields whose values are secrets, alone or behind an
// underscore.
var fields = []string{
	"private_key", "password", "passwd", "pkcs12", "secret", "secrets", "token", "tokens", "api_key",
	"authorization", "cookie", "credential", "credentials", "keys", "secret_access_key", "secret_data",
}

// Path reports whether a part of a field path is the name of a secret.
func Path(path string) bool {
	for part := range strings.SplitSeq(path, ".") {
		part, _, _ = strings.Cut(part, "[")
		part = strings.ToLower(part)
		for _, name := range fields {
			if part == name || strings.HasSuffix(part, "_"+name) {
				return true
			}
		}
	}
	return false
}
