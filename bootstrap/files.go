package bootstrap

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/statsd-admin/statsd-admin/internal/logfile"
	"go.yaml.in/yaml/v4"
)

// fileField is a field that names a file.
type fileField struct {
	node   *yaml.Node
	field  string
	path   string
	output bool // it is written to, and made if need be
}

// inputFile decodes the path of a file that the server reads.
func inputFile(to *string) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		nonEmpty(to)(d, n, path)
		d.doc.files = append(d.doc.files, fileField{node: n, field: path, path: *to})
	}
}

// outputFile decodes the path of a file that the server writes to from its start
// on.
func outputFile(to *string) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		text(to)(d, n, path)
		if *to != "" {
			d.doc.files = append(d.doc.files, fileField{node: n, field: path, path: *to, output: true})
		}
	}
}

// CheckFiles reports which files of the administration port and of StatsD
// listeners cannot be opened to read them, and which logs have no directory,
// with their places in the configuration: all in one *[Errors]. It does not
// read the files and creates nothing. Files that Load reads itself, such as the
// certificates of clusters, are not checked.
func (c *Config) CheckFiles() error {
	if c.Root.doc == nil {
		return nil // it was not read from a document
	}
	var list []*Error
	for _, f := range c.Root.doc.files {
		if strings.HasPrefix(f.field, "admin.") && c.Admin.Address.IsZero() {
			continue // without effect
		}
		if err := f.check(); err != nil {
			list = append(list, &Error{Position: c.Root.Position(f.node), Field: f.field, Message: err.Error()})
		}
	}
	return newErrors(list, 0)
}

// FilePosition returns where the configuration names a file first, as
// file:line:column: field, "" if nowhere.
func (c *Config) FilePosition(path string) string {
	if c.Root.doc == nil {
		return ""
	}
	for _, f := range c.Root.doc.files {
		if f.path == path {
			return c.Root.Position(f.node).String() + ": " + f.field
		}
	}
	return ""
}

func (f *fileField) check() error {
	if f.output {
		if err := logfile.Check(f.path); err != nil {
			return fmt.Errorf("%q: %w", f.path, err)
		}
		return nil
	}
	info, err := os.Stat(f.path)
	if err != nil {
		return fmt.Errorf("%q: %w", f.path, cause(err))
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%q is not a regular file", f.path)
	}
	file, err := os.Open(f.path)
	if err != nil {
		return fmt.Errorf("%q: %w", f.path, cause(err))
	}
	return file.Close()
}

// cause returns an error of the file system without the path.
func cause(err error) error {
	var e *fs.PathError
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}
