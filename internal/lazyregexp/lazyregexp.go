// Package lazyregexp compiles regular expressions when they are first used, so that
// the start of a program does not wait for expressions that it may never need.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that returns the compiled expression. It panics if expr is
// not valid, when it is called.
func New(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
