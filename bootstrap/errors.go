package bootstrap

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/statsd-admin/statsd-admin/internal/conftree"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

// maxErrors bounds what one load reports; a file with more errors than this
// is most likely not a configuration at all.
const maxErrors = 100

// Position is a position in a configuration file. Lines and columns count from 1;
// 0 means unknown.
type Position = conftree.Position

// Error is one error in a configuration. Its resource is empty.
type Error = decode.Error

// Errors holds every error that one [Load] found, in the order of the file.
type Errors struct {
	decode.Errors

	Warnings []string // as in Config.Warnings, of the readable part
}

// Error returns a head line and one line per error.
func (e *Errors) Error() string {
	var b strings.Builder
	if n := len(e.List) + e.Dropped; n == 1 {
		b.WriteString("bootstrap: 1 error in the configuration:")
	} else {
		fmt.Fprintf(&b, "bootstrap: %d errors in the configuration:", n)
	}
	for _, err := range e.List {
		b.WriteString("\n  ")
		b.WriteString(err.Error())
	}
	if e.Dropped > 0 {
		fmt.Fprintf(&b, "\n  and %d more", e.Dropped)
	}
	return b.String()
}

// newErrors sorts list by position, files in the order of their first error.
// dropped is how many errors are not in list.
func newErrors(list []*Error, dropped int) *Errors {
	rank := make(map[string]int)
	for _, err := range list {
		if _, ok := rank[err.Position.File]; !ok {
			rank[err.Position.File] = len(rank)
		}
	}
	slices.SortStableFunc(list, func(a, b *Error) int {
		return cmp.Or(
			cmp.Compare(rank[a.Position.File], rank[b.Position.File]),
			cmp.Compare(a.Position.Line, b.Position.Line),
			cmp.Compare(a.Position.Column, b.Position.Column),
		)
	})
	if len(list) > maxErrors {
		dropped += len(list) - maxErrors
		list = list[:maxErrors]
	}
	return &Errors{Errors: decode.Errors{List: list, Dropped: dropped}}
}
