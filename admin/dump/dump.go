// Package dump holds plain values of the configuration dump: requests, error
// responses and lists of resources.
package dump

import (
	"fmt"
	"iter"
	"net/http"
	"strings"
	"time"
)

// Query is a request for a dump.
type Query struct {
	// Endpoints includes the section of endpoints.
	Endpoints bool
	// Resource, if not empty, selects the elements of one repeated field.
	Resource string
	// Mask, if not empty, selects the fields at comma-separated paths.
	Mask string
	// Untyped also redacts data that only looks secret.
	Untyped bool
	// Match reports whether the resource with a name is included. If nil, all
	// are. An error ends the dump.
	Match func(name string) (bool, error)
}

// Matches reports whether the resource with a name is included.
func (q *Query) Matches(name string) (bool, error) {
	if q.Match == nil {
		return true, nil
	}
	return q.Match(name)
}

// Section is a section of a dump.
type Section struct {
	// Key is the sort key of the section. The usual keys are "bootstrap", "clusters",
	// "endpoint", "listeners", "route_scopes", "routes" and "secrets".
	Key string
	// Version and Updated describe the last update of the whole section. They are
	// zero if unknown.
	Version string
	Updated time.Time
	// Fields are the names of the fields that are not lists of resources.
	Fields []string
	Lists  []List
}

// List is a list of resources. Resources reads the list at each call.
type List struct {
	Field     string
	Resources iter.Seq[Resource]
	// Refused yields the names of the resources whose last update was refused, and
	// why. It may be nil.
	Refused iter.Seq2[string, string]
}

// Resource is an element of a list.
type Resource struct {
	Name    string    // "" if it has none
	Version string    // of the update that brought it; "" if it has none
	Updated time.Time // zero if unknown
}

// Error is the reason why a dump was refused, as the client gets it.
type Error struct {
	Status int // of HTTP
	Text   string
}

// Error implements error.
func (e *Error) Error() string { return "dump: " + e.Text }

// NotFound returns the error for a resource that is in no section.
func NotFound(resource string) *Error {
	return &Error{http.StatusNotFound, resource + " not found in config dump"}
}

// NotRepeated returns the error for a resource that is not a list.
func NotRepeated(resource string) *Error {
	return &Error{http.StatusBadRequest, resource + " is not a repeated field. Use ?mask=" + resource + " to get only this field"}
}

// Unfit returns the error for a mask that fits no section.
func Unfit(mask string) *Error {
	return &Error{http.StatusBadRequest, "FieldMask " + mask + " could not be successfully applied to any configs."}
}

// UnfitPaths returns the error for paths that do not fit a resource. It shows them in
// the text format of their message.
func UnfitPaths(paths []string) *Error {
	var text strings.Builder
	for _, path := range paths {
		fmt.Fprintf(&text, "paths: %q\n", path)
	}
	return &Error{http.StatusBadRequest, "FieldMask " + text.String() + " could not be successfully used."}
}
