package dump_test

import (
	"fmt"
	"io"

	"github.com/statsd-admin/statsd-admin/admin/dump"
)

// A proxy with its own form of configuration shows it at /config_dump by implementing
// the source of the admin port.
type routes []string

// Write writes the routes that the query selects.
func (r routes) Write(w io.Writer, q dump.Query) error {
	if q.Resource != "" && q.Resource != "routes" {
		return dump.NotFound(q.Resource)
	}
	for _, name := range r {
		ok, err := q.Matches(name)
		if err == nil && ok {
			_, err = fmt.Fprintf(w, "{\"name\": %q}\n", name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func ExampleQuery() {
	var out io.Writer = printer{}
	fmt.Println(routes{"checkout", "search"}.Write(out, dump.Query{Match: func(name string) (bool, error) { return name == "search", nil }}))
	fmt.Println(routes{}.Write(out, dump.Query{Resource: "clusters"}))
	// Output:
	// {"name": "search"}
	// <nil>
	// dump: clusters not found in config dump
}

// printer prints the dump.
type printer struct{}

func (printer) Write(p []byte) (int, error) {
	fmt.Print(string(p))
	return len(p), nil
}
