package admin

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Handler answers a request. It writes to w, or returns an error: an [Error]
// becomes an answer with its status, any other one a 500 and a line in the log.
// Once a large answer is on its way, an error cuts the connection, so that what
// was sent cannot be taken for a complete answer.
type Handler func(w *Response, r *Request) error

// Endpoint is one path of the interface. The rows of [Server.Endpoints] are the
// only place where a path is spelled: dispatch, the method check, /help, the
// home page, the 404 text and the list in the documentation come from them.
type Endpoint struct {
	Path    string   // compared byte for byte
	Aliases []string // other spellings, which are not listed
	Help    string
	Mutates bool    // POST only; GET is answered with 400 and has no effect
	Params  []Param // what /help and the form on the home page show
	Serve   Handler

	// Heavy says that answers can be large: few of them are made at a time.
	Heavy bool
	// Role is what a caller must have. Default: RoleAdmin for what mutates,
	// else RoleRead.
	Role Role
	// Fixed makes [Server.Remove] refuse.
	Fixed bool
	// Hidden leaves it out of all lists, as one that is switched off and answers
	// with what would turn it on.
	Hidden bool

	metrics     bool // exists in ModeMetricsOnly
	vital       bool // answered on reserved connections
	steady      bool // never switched off after panics
	paced       bool // a large answer is made in turns with others; the handler waits for nothing while it writes
	destructive bool // cannot be taken back: the home page asks twice
	serial      bool // one at a time with the others of its kind

	maxValue int // bytes of a parameter; 0: as all others
}

// Param describes a parameter of an endpoint.
type Param struct {
	Name string
	Help string
	// Kind says how it is given.
	Kind ParamKind
	// Choices are the values of a ParamChoice.
	Choices []string
}

// ParamKind says how a parameter is given.
type ParamKind uint8

// The kinds of parameters.
const (
	ParamText   ParamKind = iota // any value
	ParamFlag                    // set by its name alone
	ParamChoice                  // one of some values
)

// endpoints is an immutable set of rows.
type endpoints struct {
	rows   []*Endpoint // in byte order of their paths
	byPath map[string]*Endpoint
}

// with returns a set that has row as well. An error says why it cannot have it.
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
	return newEndpoints(append(slices.Clone(e.rows), &row)), nil
}

// without returns a set that lacks the row of path.
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

// checkPath reports what is wrong with a path that is to be added.
func checkPath(path string) error {
	if at := strings.IndexAny(path, `&"'<>?:`); at >= 0 {
		return fmt.Errorf("filter %q contains invalid character '%c'", path, path[at])
	}
	if len(path) < 2 || path[0] != '/' {
		return fmt.Errorf("admin: path %q does not begin with / and go on", path)
	}
	return nil
}
