package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/expolint"
	"github.com/statsd-admin/statsd-admin/internal/oneline"
)

// maxExposition is the number of bytes of an exposition that are read at most.
const maxExposition = 1 << 30

// exposition is a format that lint knows.
type exposition struct{ name, accept string }

// expositions has the formats by number, with the media type to request.
var expositions = [...]exposition{
	expolint.Text004:     {"0.0.4", "text/plain;version=0.0.4"},
	expolint.Text100:     {"1.0.0", "text/plain;version=1.0.0;escaping=allow-utf-8"},
	expolint.OpenMetrics: {"openmetrics", "application/openmetrics-text;version=1.0.0"},
}

// lintCommand checks an exposition.
func (p *program) lintCommand() *command {
	var c client
	var format string
	fs := newFlagSet("lint")
	fs.StringVarP(&format, "format", "f", "", "`format` of the exposition: 0.0.4, 1.0.0 or openmetrics; default: that of the content type; of a file, openmetrics if it ends with # EOF, else 1.0.0")
	for _, x := range expositions {
		choices(fs, "format", append(fs.Lookup("format").Annotations[choicesOf], x.name)...)
	}
	c.accessFlags(fs, 30*time.Second)
	return &command{
		name:      "lint",
		arguments: "url|file",
		most:      1,
		summary:   "check an exposition of metrics",
		details: "Checks the exposition of a server, in a file or on standard input (-):\n\n" +
			"    statsd-admin lint http://127.0.0.1:9901/metrics\n" +
			"    statsd-admin lint unix:/run/statsd-admin/admin.sock:/stats/metrics?usedonly\n\n" +
			"A URL without a path means /metrics. Each error is printed with its line: syntax,\n" +
			"metadata, families that are not contiguous, duplicate series, negative counters, and\n" +
			"inconsistent samples of histograms and summaries. Naming conventions are not\n" +
			"checked. The exit status is 0 if there are no errors, 1 if there are any, and 2 if\n" +
			"the exposition cannot be read or for a wrong command line.\n",
		flags: fs,
		run: func(ctx context.Context) error {
			if fs.Arg(0) == "" {
				return usageError{errors.New("error: lint needs a URL, a file or -")}
			}
			clean, err := p.lint(ctx, &c, format, fs.Arg(0))
			if err != nil {
				return usageError{err} // 1 says that there are findings
			}
			if !clean {
				return errShown
			}
			return nil
		},
	}
}

// lint prints the errors of an exposition and reports whether it is clean.
func (p *program) lint(ctx context.Context, c *client, format, source string) (clean bool, err error) {
	asked := slices.IndexFunc(expositions[:], func(x exposition) bool { return x.name == format })
	if asked < 0 && format != "" {
		return false, fmt.Errorf("error: unknown format '%s': want 0.0.4, 1.0.0 or openmetrics", format)
	}
	if asked >= 0 {
		c.accept = expositions[asked].accept
	}
	var text string
	checked := expolint.Format(max(0, asked))
	if path, remote := c.target(source); remote {
		text, checked, err = c.exposition(ctx, path)
	} else if text, err = p.readSource(source); asked < 0 {
		checked = expolint.Detect(text)
	}
	if err != nil {
		return false, err
	}
	r := expolint.Check(text, checked)
	for _, f := range r.Findings {
		fmt.Fprintf(p.stdout, "%s:%d: %s\n", oneline.Escape(source), f.Line, oneline.Escape(f.Text))
	}
	seen := fmt.Sprintf("families: %d, series: %d, format: %s", r.Families, r.Series, expositions[checked].name)
	n := len(r.Findings) + r.More
	if _, err := fmt.Fprintf(p.stdout, "errors: %d, %s\n", n, seen); err != nil {
		return false, fmt.Errorf("error: %w", err)
	}
	return n == 0, nil
}

// target sets the address of a URL or socket and returns the path behind it.
func (c *client) target(source string) (path string, remote bool) {
	scheme, rest, _ := strings.Cut(source, ":")
	separator := "/"
	switch scheme {
	case "http", "https":
		rest = strings.TrimPrefix(rest, "//")
		scheme += "://"
	case "unix":
		separator = ":/"
		scheme += ":"
	default:
		return "", false
	}
	place, path, ok := strings.Cut(rest, separator)
	if c.address = scheme + place; !ok || path == "" && separator == "/" {
		return "/metrics", true
	}
	return "/" + path, true
}

// exposition requests an exposition and returns it with its format.
func (c *client) exposition(ctx context.Context, path string) (text string, format expolint.Format, err error) {
	resp, err := c.get(ctx, path)
	if err != nil {
		return "", 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", 0, fmt.Errorf("error: GET %s: %s", path, responseError(resp))
	}
	contentType := resp.Header.Get("Content-Type")
	media, parameters, err := mime.ParseMediaType(contentType)
	switch {
	case err == nil && media == "application/openmetrics-text":
		format = expolint.OpenMetrics
	case err == nil && media == "text/plain" && parameters["version"] == "1.0.0":
		format = expolint.Text100
	case err == nil && media == "text/plain":
		format = expolint.Text004
	default:
		return "", 0, fmt.Errorf("error: GET %s: the content type '%s' is not a text exposition", path, oneline.Escape(contentType))
	}
	text, err = readText(resp.Body)
	return text, format, err
}

// readSource reads a file; the name - is standard input.
func (p *program) readSource(name string) (string, error) {
	if name == "-" {
		return readText(p.stdin)
	}
	f, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("error: %w", err)
	}
	text, err := readText(f)
	return text, errors.Join(err, f.Close())
}

func readText(r io.Reader) (string, error) {
	var b strings.Builder
	n, err := io.Copy(&b, io.LimitReader(r, maxExposition+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("error: %w", err)
	case n > maxExposition:
		return "", fmt.Errorf("error: the exposition has more than %d bytes", maxExposition)
	}
	return b.String(), nil
}
