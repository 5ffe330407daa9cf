package admin

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
)

// Token is a credential. It holds only the digest of the secret.
type Token struct {
	Name   string // shown in the audit log
	Role   Role
	Digest [sha256.Size]byte // of the secret
}

// minTokenBytes is how long a secret must be: 22 characters of base64 hold 128
// bits. Shorter ones are refused, whatever their digest.
const minTokenBytes = 22

// NewToken returns a token for a secret, which must have at least 22 bytes.
func NewToken(name string, role Role, secret string) (Token, error) {
	if len(secret) < minTokenBytes {
		return Token{}, fmt.Errorf("admin: token %q has %d bytes, want at least %d", name, len(secret), minTokenBytes)
	}
	return Token{name, role, sha256.Sum256([]byte(secret))}, nil
}

// Tokens is a set of tokens that can be replaced while a server uses it. The
// zero value is empty. Its methods are safe for concurrent use.
type Tokens struct{ list atomic.Pointer[[]Token] }

// NewTokens returns a set.
func NewTokens(list ...Token) *Tokens {
	t := new(Tokens)
	t.Set(list)
	return t
}

// Set replaces all tokens atomically. The list must not be modified afterwards.
func (t *Tokens) Set(list []Token) { t.list.Store(&list) }

// List returns all tokens. The list must not be changed.
func (t *Tokens) List() []Token {
	if t == nil {
		return nil
	}
	if list := t.list.Load(); list != nil {
		return *list
	}
	return nil
}

// find returns the token of a secret. The digest is compared with that of each
// token in constant time and without an early end, so that how long it takes
// reveals nothing about any of them.
func (t *Tokens) find(secret string) (found Token, ok bool) {
	list := t.List()
	digest := sha256.Sum256([]byte(secret))
	at := -1
	for i := range list {
		same := subtle.ConstantTimeCompare(digest[:], list[i].Digest[:])
		at = subtle.ConstantTimeSelect(same, i, at)
	}
	if at < 0 || len(secret) < minTokenBytes {
		return Token{}, false
	}
	return list[at], true
}

// maxTokensBytes bounds a file of tokens.
const maxTokensBytes = 1 << 20

// maxTokenErrors bounds the errors that are reported of one text.
const maxTokenErrors = 20

// tokenErrors are the errors of a text with tokens.
type tokenErrors []error

func (e tokenErrors) Error() string {
	var b strings.Builder
	b.WriteString(e[0].Error())
	for _, err := range e[1:] {
		b.WriteString("; " + err.Error())
	}
	return b.String()
}

func (e tokenErrors) Unwrap() []error { return e }

// ParseTokens reads lines role:digest:name, where digest is the SHA-256 of the
// secret in hexadecimal. Empty lines and comments, which begin with #, are
// skipped. The error joins the first 20 errors, which give the line number and
// show no part of the line except the role.
func ParseTokens(text []byte) ([]Token, error) { return parseTokens(text, "") }

func parseTokens(text []byte, suffix string) ([]Token, error) {
	var list []Token
	var errs tokenErrors
	number := 0
	for line := range bytes.Lines(text) {
		number++
		fields := strings.SplitN(strings.TrimSpace(string(line)), ":", 3)
		if fields[0] == "" && len(fields) == 1 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if token, problem := parseToken(fields); problem == "" {
			list = append(list, token)
		} else if errs = append(errs, fmt.Errorf("admin: tokens: line %d%s%s", number, problem, suffix)); len(errs) == maxTokenErrors {
			break
		}
	}
	if errs != nil {
		return nil, errs
	}
	return list, nil
}

// parseToken returns the token of the fields of a line, or its error.
func parseToken(fields []string) (token Token, problem string) {
	if len(fields) != 3 {
		return token, " is not role:sha256:name"
	}
	role, err := ParseRole(fields[0])
	if err != nil {
		return token, ": the role is not one of " + strings.Join(roleNames[1:], ", ")
	}
	digest, err := hex.DecodeString(fields[1])
	if err != nil || len(digest) != sha256.Size {
		return token, fmt.Sprintf(": the digest is not %d hexadecimal digits", 2*sha256.Size)
	}
	return Token{Name: fields[2], Role: role, Digest: [sha256.Size]byte(digest)}, ""
}

// ReadTokens reads a file in the format of [ParseTokens]. Only its owner may
// have permission to read or write it.
func ReadTokens(path string) ([]Token, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // of a pipe, do not wait for the other end
	if err != nil {
		return nil, fmt.Errorf("admin: tokens: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("admin: tokens: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("admin: tokens: %q is not a regular file", path)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("admin: tokens: %q has mode %04o, but only its owner may have access: chmod 600", path, mode)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxTokensBytes+1))
	if err != nil {
		return nil, fmt.Errorf("admin: tokens: %w", err)
	}
	if len(text) > maxTokensBytes {
		return nil, fmt.Errorf("admin: tokens: %q has more than %d bytes", path, maxTokensBytes)
	}
	return parseTokens(text, fmt.Sprintf(", in %q", path))
}
