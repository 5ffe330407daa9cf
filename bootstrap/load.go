package bootstrap

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/statsd-admin/statsd-admin/internal/conftree"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
	"github.com/statsd-admin/statsd-admin/upstream/config/v2form"
	"github.com/statsd-admin/statsd-admin/upstream/transport"

	"github.com/statsd-admin/statsd-admin/internal/product"
)

// Source says where a configuration is read from. With neither field set it is
// the [Default] one.
type Source struct {
	// Path is a file: .yaml and .yml are YAML; .pb and .pb_text are the message
	// envoy.config.bootstrap.v3.Bootstrap, in wire and text form, which has no
	// fields for what only this program has; .json and all other endings are
	// JSON.
	Path string
	// YAML is YAML or JSON text that is merged over the file: scalars are
	// replaced, messages merged, lists appended. Alone it is the whole
	// configuration.
	YAML string
}

// Options changes how a configuration is read. The zero value is the default.
type Options struct {
	Product            string // product name; default "proxy"
	AllowUnknownFields bool   // skip fields that are not known and list them in Config.UnknownFields
	// CheckFiles also reads the files that the configuration names, such as
	// mapping rules, tokens and certificates, and reports their errors with those
	// of the configuration.
	CheckFiles bool
}

// overlayName stands for a file name in positions of Source.YAML.
const overlayName = "<config-yaml>"

//go:embed default.yaml
var defaultYAML string

// Default returns the text of the default configuration, a commented YAML file
// that can be copied and changed.
func Default() string { return defaultYAML }

// Load reads, merges and checks a configuration. The error is an *[Errors]
// with all errors of the file, or the reason why it could not be read.
func Load(src Source, opts Options) (*Config, error) {
	if src.Path == "" && src.YAML == "" {
		return Parse("default.yaml", []byte(defaultYAML), opts)
	}
	if src.Path == "" {
		return parse(overlayName, []byte(src.YAML), parseYAML, "", opts)
	}
	data, err := readFile(src.Path)
	if err != nil {
		return nil, err
	}
	return parse(src.Path, data, parserFor(src.Path, opts), src.YAML, opts)
}

// Parse checks a configuration that is in memory. name is what positions show
// as the file; its ending decides as in [Source].
func Parse(name string, data []byte, opts Options) (*Config, error) {
	return parse(name, data, parserFor(name, opts), "", opts)
}

type parser func(name string, data []byte) (*yaml.Node, []*Error)

func parserFor(path string, opts Options) parser {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".yaml", ".yml":
		return parseYAML
	case ".pb":
		return parseWire
	case ".pb_text":
		if opts.AllowUnknownFields {
			return parseTextLeniently
		}
		return parseText
	}
	return parseJSON
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("bootstrap: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, conftree.MaxBytes+1)) // it may be a pipe or a device
	if err != nil {
		return nil, fmt.Errorf("bootstrap: %w", err)
	}
	if len(data) > conftree.MaxBytes {
		return nil, fmt.Errorf("bootstrap: %q has more than the limit of %d bytes", path, conftree.MaxBytes)
	}
	return data, nil
}

func parse(name string, data []byte, parser parser, overlay string, opts Options) (*Config, error) {
	opts.Product = cmp.Or(opts.Product, product.Default)
	doc := &document{file: name, overlayFile: overlayName}
	root, errs := parser(name, data)
	if strings.TrimSpace(overlay) != "" {
		over, overErrs := parseYAML(overlayName, []byte(overlay))
		errs = append(errs, overErrs...)
		if len(errs) == 0 {
			doc.overlay = make(map[*yaml.Node]struct{})
			collect(over, doc.overlay)
			root = mergeNodes("", root, over)
		}
	}
	if len(errs) > 0 {
		return nil, newErrors(errs, 0)
	}
	if conftree.IsNull(root) {
		root = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: root.Line, Column: root.Column}
	}
	doc.root = root
	d := &decoder{doc: doc, product: opts.Product, allowUnknown: opts.AllowUnknownFields}
	d.messages = &messages{d, decode.NewDecoder(decode.Options{
		Product: d.product, V2: v2form.Messages(), AllowUnknown: d.allowUnknown, ReadFile: transport.ReadFile,
	})}
	c := defaults(opts.Product)
	c.decode(d, root)
	c.UnknownFields, c.Warnings = d.unknown, d.warnings
	if opts.CheckFiles {
		c.readFiles(d) // whose warnings the server logs, too
	}
	if len(d.errs) > 0 {
		err := newErrors(d.errs, d.dropped)
		err.Warnings = d.warnings
		return nil, err
	}
	return c, nil
}
