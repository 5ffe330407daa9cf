package bootstrap

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/statsd-admin/statsd-admin/internal/boundedfile"
	"github.com/statsd-admin/statsd-admin/internal/logfile"
	"github.com/statsd-admin/statsd-admin/internal/redact"
	"github.com/statsd-admin/statsd-admin/server/certs"
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
		if !redact.FileName(*to) {
			*to = "" // it would be shown if it cannot be opened
			d.errorf(n, path, "looks like a secret; this is the name of a file, ./NAME if it looks like one")
			return
		}
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
	if list := c.checkFiles(); len(list) > 0 {
		return newErrors(list, 0)
	}
	return nil
}

func (c *Config) checkFiles() (list []*Error) {
	if c.Root.doc == nil {
		return nil // it was not read from a document
	}
	for _, f := range c.Root.doc.files {
		if c.unused(f.field) {
			continue
		}
		if err := f.check(); err != nil {
			list = append(list, &Error{Position: c.Root.Position(f.node), Field: f.field, Message: err.Error()})
		}
	}
	return list
}

// unused reports whether a field has no effect.
func (c *Config) unused(field string) bool {
	return strings.HasPrefix(field, "admin.") && c.Admin.Address.IsZero()
}

// fileContent is a field whose files a server reads when it starts.
type fileContent struct {
	node  *yaml.Node
	field string
	read  func() error
}

// reads notes how a server will read the files of the field n.
func (d *decoder) reads(n *yaml.Node, path string, read func() error) {
	d.doc.contents = append(d.doc.contents, fileContent{n, path, read})
}

// readFiles reports the errors of all files that a server would use.
func (c *Config) readFiles(d *decoder) {
	d.errs = append(d.errs, c.checkFiles()...)
	for _, f := range d.doc.contents {
		if c.unused(f.field) || slices.ContainsFunc(d.errs, func(e *Error) bool { return strings.HasPrefix(e.Field, f.field) }) {
			continue
		}
		err := f.read()
		var several interface{ Unwrap() []error }
		list := []error{err}
		if errors.As(err, &several) {
			list = several.Unwrap()
		}
		if all, ok := errors.AsType[*Errors](err); ok {
			d.dropped += all.Dropped
		}
		for _, err := range list {
			if own, ok := errors.AsType[*Error](err); ok { // with a place in the other file
				d.errs = append(d.errs, own)
			} else if err != nil {
				d.errorf(f.node, f.field, "%s", cutPackage(err.Error()))
			}
		}
	}
}

// cutPackage returns the text of an error without the package in front, which a
// place in the configuration replaces.
func cutPackage(text string) string {
	for _, name := range []string{"bootstrap: ", "certs: ", "admin: tokens: ", "accesslog: "} {
		text = strings.TrimPrefix(text, name)
	}
	return text
}

// FilePosition returns the first position at which the configuration names a
// file, as file:line:column: field, or "" if there is none.
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
		return fmt.Errorf("%q: %w", f.path, boundedfile.Cause(err))
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%q is not a regular file", f.path)
	}
	file, err := os.Open(f.path)
	if err != nil {
		return fmt.Errorf("%q: %w", f.path, boundedfile.Cause(err))
	}
	return file.Close()
}

// readsCertificates notes that the field n names the files of t.
func (d *decoder) readsCertificates(n *yaml.Node, path string, t *certs.Files) {
	d.reads(n, path, func() error {
		_, err := certs.Load(nil, *t)
		return err
	})
}
