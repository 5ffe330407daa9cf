package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/internal/oneline"
	"github.com/statsd-admin/statsd-admin/statsd/report"
)

// explainFlags returns the flags of the daemon that affect the explanation of
// lines, also flags of statsd_exporter.
func explainFlags(o *Options, r *rawOptions, x *exporterFlags) *pflag.FlagSet {
	all := flagSet(o, r)
	fs := newFlagSet("explain")
	for _, name := range []string{"config-path", "config-yaml", "allow-unknown-static-fields", "product-name"} {
		fs.AddFlag(all.Lookup(name))
	}
	exporter := exporterFlagSet(x)
	mapping := exporter.Lookup("statsd.mapping-config")
	mapping.Usage = "`file` with mapping rules, instead of a configuration: explain as the server with this flag of statsd_exporter"
	fs.AddFlag(mapping)
	for _, dialect := range exporterDialects {
		parse := exporter.Lookup("statsd.parse-" + dialect.flag + "-tags")
		parse.Usage += ", in place of a configuration as well"
		fs.AddFlag(parse)
	}
	fs.AddFlag(all.Lookup("help"))
	return fs
}

// explainCommand explains the lines of files.
func (p *program) explainCommand() *command {
	var o Options
	var r rawOptions
	var x exporterFlags
	fs := explainFlags(&o, &r, &x)
	return &command{
		name:      "explain",
		arguments: "[file | line ...]",
		most:      -1,
		summary:   "explain StatsD lines",
		details: "Explains how a server with this configuration would handle each StatsD line in the\n" +
			"files or on standard input, or where and why it would reject the line. An argument\n" +
			"that is not a file but contains a | is itself a line. Each line is explained as if\n" +
			"it were the first one. The exit status is 1 if any line is rejected, and 2 for a\n" +
			"wrong command line.\n",
		flags: fs,
		run:   func(context.Context) error { return p.explain(&o, &r, exporterArguments(fs), fs.Args()) },
	}
}

// exporterArguments returns the flags of statsd_exporter that are given.
func exporterArguments(fs *pflag.FlagSet) (all []string) {
	fs.Visit(func(f *pflag.Flag) {
		if strings.HasPrefix(f.Name, "statsd.") {
			all = append(all, "--"+f.Name+"="+f.Value.String())
		}
	})
	return all
}

func (p *program) explain(o *Options, r *rawOptions, exporter, files []string) error {
	if err := o.setMode(*r); err != nil {
		return usageError{err}
	}
	if i := slices.Index(files, ""); i >= 0 {
		return usageError{fmt.Errorf("error: argument %d is '', not a file, a line with a | or -", i+1)}
	}
	if len(exporter) > 0 {
		if o.ConfigPath+o.ConfigYAML != "" {
			name, _, _ := strings.Cut(exporter[0], "=")
			return usageError{fmt.Errorf("error: %s cannot be combined with a configuration, which has statsd.mapping.file and statsd.parse", name)}
		}
		x, _, err := parseExporterOptions(exporter, p.hardware)
		if err != nil {
			return usageError{err}
		}
		if err := x.Exporter.check(); err != nil {
			return err
		}
		o.ConfigYAML = x.ConfigYAML
	}
	cfg, err := loadConfig(o)
	if err != nil {
		return err
	}
	e, err := newExplainer(p.stdout, cfg)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		files = []string{"-"}
	}
	for _, name := range files {
		if err := p.explainFile(e, name); err != nil {
			return err
		}
	}
	if err := e.summary(); err != nil {
		return err
	}
	if e.rejected > 0 {
		return errShown
	}
	return nil
}

// explainFile explains the lines of a file; the name - is standard input.
func (p *program) explainFile(e *explainer, name string) error {
	if name == "-" {
		return e.read("stdin", p.stdin)
	}
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) && strings.Contains(name, "|") {
		return e.read("argument", strings.NewReader(name))
	}
	if err != nil {
		return fmt.Errorf("error: %w", err)
	}
	return errors.Join(e.read(name, f), f.Close())
}

// explainer writes explanations of lines.
type explainer struct {
	out     *bufio.Writer
	explain func(line []byte) report.Explanation
	longest int // bytes of a line that are parsed

	accepted, blank, rejected int
	reasons                   map[string]int
}

func newExplainer(w io.Writer, c *bootstrap.Config) (*explainer, error) {
	explain, err := c.Explainer(bootstrap.Startup{})
	if err != nil {
		return nil, err
	}
	e := &explainer{out: bufio.NewWriter(w), explain: explain, longest: math.MaxInt, reasons: make(map[string]int)}
	const slack = 64 << 10 // blanks around a line, which do not count
	if n := c.StatsD.Limits.LineBytes; n >= 0 && n < math.MaxInt-slack {
		e.longest = n + slack
	}
	return e, nil
}

// read explains all lines of r. Output is flushed before it waits for more
// input.
func (e *explainer) read(name string, r io.Reader) error {
	in := bufio.NewReader(r)
	var line []byte
	for number := 1; ; number++ {
		var err error
		line, err = readLine(in, line[:0], e.longest)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("error: %w", err)
		}
		if err == nil || len(line) > 0 {
			e.line(name, number, line)
		}
		if in.Buffered() == 0 || err != nil {
			if err := e.out.Flush(); err != nil {
				return fmt.Errorf("error: %w", err)
			}
		}
		if err != nil {
			return nil
		}
	}
}

// readLine appends a line without its line feed to dst, truncated to longest
// bytes. It returns [io.EOF] with the last line.
func readLine(r *bufio.Reader, dst []byte, longest int) ([]byte, error) {
	for {
		part, err := r.ReadSlice('\n')
		if err == nil {
			part = bytes.TrimSuffix(part, []byte("\n"))
		}
		dst = append(dst, part[:min(len(part), longest-len(dst))]...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return dst, err
		}
	}
}

// shownBytes is how much of a line is repeated.
const shownBytes = 512

func (e *explainer) line(name string, number int, line []byte) {
	x := e.explain(line)
	if x.Reason == "" && x.Kind == "blank" {
		e.blank++
		return
	}
	shown := oneline.Escape(string(line[:min(len(line), shownBytes)]))
	if len(line) > shownBytes {
		shown += "…"
	}
	fmt.Fprintf(e.out, "%s:%d: %s\n", oneline.Escape(name), number, shown)
	if x.Reason != "" {
		e.rejected++
		e.reasons[x.Reason]++
		e.fact("rejected", fmt.Sprintf("%s at byte %d", x.Reason, x.Offset))
		return
	}
	e.accepted++
	switch {
	case x.Event != nil:
		e.fact("event", x.Event.Title)
		e.fact("text", x.Event.Text)
		e.time(x.Event.Time)
		e.optional("host", x.Event.Host)
		e.optional("aggregation key", x.Event.Key)
		e.fact("priority", x.Event.Priority)
		e.optional("source type", x.Event.Source)
		e.fact("alert type", x.Event.Alert)
		e.tags(x.Event.Tags)
	case x.Check != nil:
		e.fact("service check", x.Check.Name)
		e.fact("status", [...]string{"ok", "warning", "critical", "unknown"}[x.Check.Status])
		e.time(x.Check.Time)
		e.optional("host", x.Check.Host)
		e.optional("message", x.Check.Message)
		e.tags(x.Check.Tags)
	default:
		e.metric(&x)
	}
	if x.TagErrors > 0 {
		e.fact("tag errors", strconv.Itoa(x.TagErrors))
	}
	if x.UnknownFields > 0 {
		e.fact("unknown fields", strconv.Itoa(x.UnknownFields))
	}
}

func (e *explainer) metric(x *report.Explanation) {
	e.fact("name", x.Name)
	tags := make([]string, len(x.Tags))
	for i, t := range x.Tags {
		tags[i] = t.Name
		if t.Value != "" {
			tags[i] += ":" + t.Value
		}
	}
	e.tags(tags)
	for i := range x.Samples {
		e.sample(&x.Samples[i])
	}
}

func (e *explainer) sample(s *report.Sample) {
	e.fact("type", s.Type+" ("+s.Kind+")")
	if s.Kind == "set" {
		e.fact("  member", s.Member)
	} else {
		e.fact("  values", strings.Join(s.Values, ", "))
	}
	if s.Rate != 1 {
		e.fact("  rate", strconv.FormatFloat(s.Rate, 'g', -1, 64))
	}
	if s.Rule != nil {
		e.fact("  rule", strings.TrimSuffix(fmt.Sprintf("%d (%s) at %s", s.Rule.Number, s.Rule.Match, s.Rule.Position), " at "))
		if s.Rule.Scale != nil && s.Kind != "set" {
			e.fact("  scale", strconv.FormatFloat(*s.Rule.Scale, 'g', -1, 64))
		}
	}
	if s.Dropped {
		by := "the mapping rules"
		if s.Filter != "" {
			by = "filters." + s.Filter
		}
		e.fact("  dropped", "by "+by)
		return
	}
	e.fact("  stat", s.Stat)
	e.fact("  series", s.Series)
	e.optional("  series unit", s.Unit)
	if s.Limit != "" {
		e.fact("  over limit", s.Limit)
	}
}

func (e *explainer) tags(tags []string) {
	for _, t := range tags {
		e.fact("tag", t)
	}
}

func (e *explainer) optional(name, value string) {
	if value != "" {
		e.fact(name, value)
	}
}

// time writes a time in unix seconds; 0 means that there is none.
func (e *explainer) time(unix int64) {
	if unix != 0 {
		e.fact("time", time.Unix(unix, 0).UTC().Format(time.RFC3339))
	}
}

func (e *explainer) fact(name, value string) {
	if value == "" {
		fmt.Fprintf(e.out, "    %s:\n", name)
		return
	}
	fmt.Fprintf(e.out, "    %-17s%s\n", name+":", oneline.Escape(value))
}

// summary writes the number of lines and the reasons in descending order of
// frequency.
func (e *explainer) summary() error {
	if e.accepted+e.rejected > 0 {
		fmt.Fprintln(e.out)
	}
	fmt.Fprintf(e.out, "accepted: %d\nblank: %d\nrejected: %d\n", e.accepted, e.blank, e.rejected)
	reasons := slices.SortedFunc(maps.Keys(e.reasons), func(a, b string) int {
		return cmp.Or(cmp.Compare(e.reasons[b], e.reasons[a]), cmp.Compare(a, b))
	})
	for _, r := range reasons {
		fmt.Fprintf(e.out, "    %s: %d\n", r, e.reasons[r])
	}
	return prefixed(e.out.Flush())
}
