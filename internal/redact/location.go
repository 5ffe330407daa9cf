package redact

import "strings"

// URLPath returns the path of a URL for display: [Mark] behind a slash if a part of it
// looks secret or follows a name that [Key] recognizes, as in /hooks/token/abc, and
// otherwise the path.
func URLPath(path string) string {
	secret := false
	for part := range strings.SplitSeq(path, "/") {
		if part != "" && secret || LooksSecret(part) || random(part) {
			return "/" + Mark
		}
		secret = Key(part)
	}
	return path
}

// FileName reports whether s can be shown as the name of a file. Relative names with
// parts that look like tokens cannot.
func FileName(s string) bool {
	if LooksSecret(s) {
		return false
	}
	if strings.HasPrefix(s, "/") || strings.HasPrefix(s, "./") || strings.HasPrefix(s, "../") {
		return true
	}
	for part := range strings.SplitSeq(s, "/") {
		if dot := strings.LastIndexByte(part, '.'); dot > 0 && len(part)-dot <= len(".abcdef") {
			continue
		}
		if random(part) {
			return false
		}
	}
	return true
}

// random reports whether s is as long as a token and mixes kinds of characters as one:
// digits with letters, or letters of both cases.
func random(s string) bool {
	const shortest = 16
	var digit, lower, upper bool
	for _, c := range []byte(s) {
		digit = digit || '0' <= c && c <= '9'
		lower = lower || 'a' <= c && c <= 'z'
		upper = upper || 'A' <= c && c <= 'Z'
	}
	return len(s) >= shortest && (digit && (lower || upper) || lower && upper)
}
