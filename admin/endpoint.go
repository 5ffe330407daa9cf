package admin

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/statsd-admin/statsd-admin/admin/ui"
)

// Handler answers a request. It writes to w or returns an error: an [Error]
// becomes a response with its status, any other error a 500 and a log line.
// Once part of a large response has been sent, an error aborts the connection,
// so that the client cannot mistake a part for the complete response.
type Handler func(w *Response, r *Request) error

// Endpoint is one path of the interface. The rows of [Server.Endpoints] are the
// only place where a path is spelled: dispatch, the method check, /help, the
// home page, the 404 text and docs/endpoints.md are derived from them.
type Endpoint struct {
	Path    string   // compared byte for byte
	Aliases []string // other spellings, not listed
	Help    string
	Group   string  // heading on the home page; default "Other"
	Mutates bool    // POST only; GET is answered with 400 and has no effect
	Params  []Param // shown by /help and on the home page
	Serve   Handler

	// OpenParams accepts parameters that Params does not list. An endpoint
	// without Params does so too, unless it is Fixed. Otherwise a mutation with
	// an unknown parameter is answered with 400, and the response to a read
	// names it in the header x-unknown-parameters.
	OpenParams bool
	// TakesBody is set for handlers that read [Request.Body]. A body is a form only if
	// it begins with a parameter of Params, so that the content type that curl -d
	// sends by default does not matter.
	TakesBody bool
	// Heavy is set for large responses. At most Limits.HeavyRunning of them run
	// at once.
	Heavy bool
	// CPUBound limits the number of large responses rendered at once to one
	// less than the number of CPUs. The handler must not block while it writes.
	CPUBound bool
	// Destructive makes the home page ask for confirmation.
	Destructive bool
	// Serial runs the handler while no other serial endpoint runs, so that the
	// audit log has their changes in order.
	Serial bool
	// DryRun adds the parameter dry_run. The handler must respect
	// [Request.DryRun].
	DryRun bool
	// Settings are the values that the handler changes, if they can be restored. It
	// adds the parameter ttl and implies Serial.
	Settings *Settings
	// Role is the role that a caller needs. Default: RoleAdmin for mutations,
	// RoleRead for everything else.
	Role Role
	// Fixed makes [Server.Remove] refuse to remove the endpoint.
	Fixed bool
	// Hidden keeps the endpoint out of all lists.
	Hidden bool
	// Put also accepts PUT for a mutation.
	Put bool

	metrics       bool // exists in ModeMetricsOnly
	critical      bool // answered on reserved connections
	neverDisabled bool // stays on after repeated panics
	pair          bool // the home page has fields for the name and the value of a parameter

	also     []string // further parameters, not listed
	maxValue int      // bytes of a parameter value; 0 means Limits.QueryValue
}

// Param describes a parameter of an endpoint.
type Param struct {
	Name string
	Help string
	Kind ParamKind
	// Choices are the values of a ParamChoice, the default first.
	Choices []string
}

// ParamKind is the form of a parameter.
type ParamKind uint8

// The kinds of parameters.
const (
	ParamText   ParamKind = iota // any value
	ParamFlag                    // set by its name alone
	ParamChoice                  // one of Choices
	ParamLines                   // a text of several lines
)

// endpoints is an immutable set of rows.
type endpoints struct {
	rows   []*Endpoint // in byte order of their paths
	byPath map[string]*Endpoint
}

// with returns a copy of the set with row added.
func (e *endpoints) with(row Endpoint) (*endpoints, error) {
	paths := append([]string{row.Path}, row.Aliases...)
	for _, path := range paths {
		if err := checkPath(path); err != nil {
			return nil, err
		}
		if e.byPath[path] != nil {
			return nil, fmt.Errorf("admin: path %q is taken", path)
		}
	}
	if row.Serve == nil {
		return nil, fmt.Errorf("admin: path %q has no handler", row.Path)
	}
	if row.Settings != nil {
		row.Serial = true
		row.Params = append(slices.Clip(row.Params), ttlParam)
	}
	if row.DryRun {
		row.Params = append(slices.Clip(row.Params), dryRunParam)
	}
	return newEndpoints(append(slices.Clone(e.rows), &row)), nil
}

// without returns a copy of the set without the row for path.
func (e *endpoints) without(path string) *endpoints {
	return newEndpoints(slices.DeleteFunc(slices.Clone(e.rows), func(row *Endpoint) bool { return row.Path == path }))
}

func newEndpoints(rows []*Endpoint) *endpoints {
	slices.SortFunc(rows, func(a, b *Endpoint) int { return cmp.Compare(a.Path, b.Path) })
	e := &endpoints{rows, make(map[string]*Endpoint, len(rows))}
	for _, row := range rows {
		e.byPath[row.Path] = row
		for _, alias := range row.Aliases {
			e.byPath[alias] = row
		}
	}
	return e
}

// checkPath returns an error if path cannot be the path of a new endpoint.
func checkPath(path string) error {
	if at := strings.IndexAny(path, `&"'<>?:`); at >= 0 {
		return fmt.Errorf("filter %q contains invalid character '%c'", path, path[at])
	}
	if strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return fmt.Errorf("admin: path %q contains a space, a control byte or a byte over 0x7e", path)
	}
	if len(path) < 2 || path[0] != '/' {
		return fmt.Errorf("admin: path %q must begin with / and be longer", path)
	}
	if strings.HasPrefix(path, "//") {
		return fmt.Errorf("admin: path %q must not begin with //, which refers to another host in a link", path)
	}
	if strings.HasPrefix(path, ui.Prefix) {
		return fmt.Errorf("admin: path %q is taken by the assets of the pages", path)
	}
	return nil
}
