package bootstrap

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/statsd-admin/statsd-admin/internal/boundedfile"
	"github.com/statsd-admin/statsd-admin/internal/conftree"
	"github.com/statsd-admin/statsd-admin/statsd/mapping"
)

// StatsDMapping says which rules map received names. The rules are in a file or
// in the configuration, not in both.
type StatsDMapping struct {
	File      string
	Watch     bool   // reload the file when it changes
	Unmatched string // keep or drop: samples that no rule matches; empty: as the rules say
	Rules     Raw    // the content of a mapping file
}

// Given reports whether there are rules.
func (m *StatsDMapping) Given() bool { return m.File != "" || m.Rules.Node != nil }

func (m *StatsDMapping) set(d *decoder, n *yaml.Node, path string) {
	seen := d.message(n, path, []field{
		{"file", func(d *decoder, n *yaml.Node, path string) {
			if n.Kind == yaml.ScalarNode && n.Value == "" {
				return
			}
			inputFile(&m.File)(d, n, path)
			d.reads(n, path, func() error {
				_, warnings, err := m.Load()
				d.warnings = append(d.warnings, warnings...)
				return err
			})
		}},
		{"watch", boolean(&m.Watch)},
		{"unmatched", choice(&m.Unmatched, "keep", "drop")},
		{"rules", func(d *decoder, n *yaml.Node, path string) {
			raw(&m.Rules)(d, n, path)
			new(mappingFile).set(d, n, path)
		}},
	})
	if m.File != "" {
		d.oneOf(n, path, seen, false, "file", "rules")
	}
	if at, ok := seen["watch"]; ok && m.Watch && m.File == "" {
		d.errorf(at, join(path, "watch"), "there is no file to watch")
	}
	if at, ok := seen["unmatched"]; ok && m.Unmatched == "drop" && m.File == "" && m.Rules.Node == nil {
		d.errorf(at, join(path, "unmatched"), "has no effect without file or rules")
	}
}

// Load returns the rules, from the file or the configuration, and warnings about
// them. Errors are an *[Errors], unless the file cannot be read; it must be a regular
// file of at most 64 MiB.
func (m *StatsDMapping) Load() (rules *mapping.Rules, warnings []string, err error) {
	f := new(mappingFile)
	var d *decoder
	if m.File == "" {
		d = &decoder{doc: m.Rules.doc}
		f.set(d, m.Rules.Node, m.Rules.Path)
	} else {
		data, err := boundedfile.Read(m.File, conftree.MaxBytes)
		if err != nil {
			return nil, nil, fmt.Errorf("bootstrap: %w", err)
		}
		if d, err = f.parse(m.File, data); err != nil {
			return nil, nil, err
		}
	}
	if m.Unmatched != "" {
		f.cfg.DropUnmatched = m.Unmatched == "drop"
	}
	rules, err = f.compile(d)
	return rules, d.warnings, err
}

// ParseMapping parses the text of a mapping file. name is the file name in
// positions.
func ParseMapping(name string, data []byte) (rules *mapping.Rules, warnings []string, err error) {
	f := new(mappingFile)
	d, err := f.parse(name, data)
	if err != nil {
		return nil, nil, err
	}
	rules, err = f.compile(d)
	return rules, d.warnings, err
}

// mappingFile decodes a mapping file of statsd_exporter.
type mappingFile struct {
	cfg mapping.Config

	regex    bool            // of rules without match_type
	observer string          // of rules without observer_type
	partial  bool            // of rules without partial_globs
	summary  mapping.Observe // of rules with summaries
	buckets  mapping.Observe // of rules with histograms
	rules    []*yaml.Node
}

func (f *mappingFile) parse(name string, data []byte) (*decoder, error) {
	root, errs := parseYAML(name, data)
	if len(errs) > 0 {
		return nil, newErrors(errs, 0)
	}
	d := &decoder{doc: &document{file: name, root: root}}
	if !conftree.IsNull(root) {
		f.set(d, root, "")
	}
	return d, nil
}

// compile returns the rules of f, or the errors of d.
func (f *mappingFile) compile(d *decoder) (*mapping.Rules, error) {
	if len(d.errs) > 0 {
		return nil, newErrors(d.errs, d.dropped)
	}
	rules, err := mapping.New(f.cfg)
	if wrong, ok := errors.AsType[*mapping.RuleError](err); ok && wrong.Rule < len(f.rules) {
		return nil, newErrors([]*Error{{Position: d.doc.position(f.rules[wrong.Rule]), Field: wrong.Field, Message: wrong.Err.Error()}}, 0)
	}
	return rules, err
}

// The defaults of the file format.
func defaultQuantiles() []float64 { return []float64{0.5, 0.9, 0.99} }
func defaultBuckets() []float64 {
	return []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
}

const (
	defaultNativeFactor  = 1.1
	defaultNativeBuckets = 256
)

func (f *mappingFile) set(d *decoder, n *yaml.Node, path string) {
	f.observer = "summary"
	f.summary = mapping.Observe{Quantiles: defaultQuantiles()}
	f.buckets = mapping.Observe{Buckets: defaultBuckets(), NativeFactor: defaultNativeFactor, NativeBuckets: defaultNativeBuckets}
	// Rules are decoded when the defaults are known.
	var rules *yaml.Node
	d.message(n, path, []field{
		{"defaults", f.setDefaults},
		{"mappings", func(_ *decoder, n *yaml.Node, _ string) { rules = n }},
		{"x-statsd-admin", nested(
			field{"unmatched", enum(&f.cfg.DropUnmatched, "keep, drop", false, true)},
			field{"partial_globs", boolean(&f.partial)},
		)},
	})
	f.cfg.Observe = &f.summary
	if f.observer == "histogram" {
		f.cfg.Observe = &f.buckets
	}
	if rules != nil {
		if rules.Kind == yaml.SequenceNode {
			f.rules = rules.Content
		}
		list(&f.cfg.Rules, func(r *mapping.Rule) setter { return f.rule(r) })(d, rules, join(path, "mappings"))
	}
}

func (f *mappingFile) setDefaults(d *decoder, n *yaml.Node, path string) {
	observer := choiceOrEmpty(&f.observer, "summary", "histogram")
	seen := d.message(n, path, []field{
		{"observer_type", observer},
		{"timer_type", observer},
		{"match_type", matchType(&f.regex)},
		{"glob_disable_ordering", boolean(&f.cfg.MostLiteral)},
		{"ttl", timeToLive(&f.cfg.TTL)},
		{"summary_options", summaryOptions(&f.summary)},
		{"histogram_options", histogramOptions(&f.buckets)},
	})
	f.oldName(d, seen, path)
}

// oldName warns about the old name of observer_type.
func (f *mappingFile) oldName(d *decoder, seen map[string]*yaml.Node, path string) {
	if at, ok := seen["timer_type"]; ok {
		d.warnf(at, join(path, "timer_type"), "is the old name of observer_type")
		if _, both := seen["observer_type"]; both {
			d.errorf(at, join(path, "timer_type"), "only one of observer_type, timer_type may be set")
		}
	}
}

// choiceOrEmpty is choice with empty text for the first word.
func choiceOrEmpty(to *string, words ...string) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		if n.Kind == yaml.ScalarNode && n.Value == "" {
			*to = words[0]
			return
		}
		choice(to, words...)(d, n, path)
	}
}

func matchType(regex *bool) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		word := ""
		choiceOrEmpty(&word, "glob", "regex")(d, n, path)
		*regex = word == "regex"
	}
}

func timeToLive(to *time.Duration) setter { return period(to, 0, forever) }

func (f *mappingFile) rule(r *mapping.Rule) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		r.Regex, r.Partial = f.regex, f.partial
		r.Position = d.doc.position(n).String()
		var observer, action string
		summary, buckets := f.summary, f.buckets
		kind := choiceOrEmpty(&observer, "summary", "histogram")
		seen := d.message(n, path, []field{
			{"match", text(&r.Match)},
			{"match_type", matchType(&r.Regex)},
			{"match_metric_type", enum(&r.Kind, "counter, gauge, observer", mapping.Counter, mapping.Gauge, mapping.Observer)},
			{"name", text(&r.Name)},
			{"labels", labelsOf(&r.Labels)},
			{"honor_labels", boolean(&r.HonorLabels)},
			{"observer_type", kind},
			{"timer_type", kind},
			{"summary_options", summaryOptions(&summary)},
			{"histogram_options", histogramOptions(&buckets)},
			{"ttl", timeToLive(&r.TTL)},
			{"help", text(&r.Help)},
			{"scale", func(d *decoder, n *yaml.Node, path string) {
				number(&r.Scale, -math.MaxFloat64, math.MaxFloat64)(d, n, path)
				r.Zero = r.Scale == 0
			}},
			{"action", choiceOrEmpty(&action, "map", "drop")},
			{"x-statsd-admin", nested(
				field{"partial_globs", boolean(&r.Partial)},
			)},
		})
		d.require(n, path, seen, "match", "name")
		f.oldName(d, seen, path)
		r.Drop = action == "drop"
		f.checkRule(d, r, seen, path)
		observer = cmp.Or(observer, f.observer)
		r.Observe = &summary
		other := "histogram_options"
		if observer == "histogram" {
			r.Observe, other = &buckets, "summary_options"
		}
		if at, ok := seen[other]; ok {
			d.errorf(at, join(path, other), "has no meaning for a rule with observer_type %s", observer)
		}
	}
}

// checkRule reports fields that cannot be compiled.
func (f *mappingFile) checkRule(d *decoder, r *mapping.Rule, seen map[string]*yaml.Node, path string) {
	if at, ok := seen["match"]; ok {
		err := mapping.CheckGlob(r.Match, r.Partial)
		if r.Regex {
			err = mapping.CheckRegex(r.Match)
		}
		if err != nil {
			d.errorf(at, join(path, "match"), "%v", err)
		}
	}
	if at, ok := seen["name"]; ok {
		if err := mapping.CheckName(r.Name); err != nil {
			d.errorf(at, join(path, "name"), "%v", err)
		}
		warnOfReference(d, at, join(path, "name"), r, r.Name)
	}
	if at, ok := seen["labels"]; ok {
		for key, value := range conftree.Pairs(at) {
			warnOfReference(d, value, join(path, "labels."+conftree.Key(key.Value, false)), r, value.Value)
		}
	}
}

// warnOfReference warns about a reference that the match of r never fills.
func warnOfReference(d *decoder, n *yaml.Node, path string, r *mapping.Rule, text string) {
	if missing := mapping.MissingReference(r.Match, r.Regex, text); missing != "" {
		d.warnf(n, path, "the reference ${%s} stays empty: %s does not capture it", missing, conftree.Quote(r.Match, false))
	}
}

// labelsOf decodes the labels of a rule.
func labelsOf(to *[]mapping.Label) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		if n.Kind != yaml.MappingNode {
			d.errorf(n, path, "%s is not a mapping", d.show(n, path))
			return
		}
		*to = nil
		for key, value := range conftree.Pairs(n) {
			l := mapping.Label{Name: key.Value, Value: value.Value}
			at := join(path, conftree.Key(key.Value, false))
			if value.Kind != yaml.ScalarNode {
				d.errorf(value, at, "%s is not a string", d.show(value, at))
			}
			switch err := mapping.CheckLabel(l.Name); {
			case err != nil:
				d.errorf(key, at, "%v", err)
			case len(l.Name) == 1:
				d.warnf(key, at, "statsd_exporter refuses label names of one letter")
			}
			if conftree.IsNull(value) {
				l.Value = ""
			}
			*to = append(*to, l)
		}
		mapping.SortLabels(*to)
	}
}

func summaryOptions(o *mapping.Observe) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		var quantiles []float64
		var steps, capacity int
		seen := d.message(n, path, []field{
			{"quantiles", list(&quantiles, func(q *float64) setter {
				return func(d *decoder, n *yaml.Node, path string) {
					var tolerance float64
					seen := d.message(n, path, []field{{"quantile", number(q, 0, 1)}, {"error", number(&tolerance, 0, 1)}})
					d.require(n, path, seen, "quantile")
				}
			})},
			{"max_age", period(&o.MaxAge, 0, 24*time.Hour)},
			{"age_buckets", whole(&steps, 0, 100)},
			{"buf_cap", whole(&capacity, 0, math.MaxInt32)},
		})
		if len(quantiles) > 0 {
			slices.Sort(quantiles)
			o.Quantiles = slices.Compact(quantiles)
		}
		if steps > 0 {
			o.Steps = steps
		}
		if at, ok := seen["max_age"]; ok && o.MaxAge != 0 && o.MaxAge < time.Second {
			d.errorf(at, join(path, "max_age"), "%v is less than a second", o.MaxAge)
		}
	}
}

func histogramOptions(o *mapping.Observe) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		var buckets []float64
		var factor float64
		var most int
		seen := d.message(n, path, []field{
			{"buckets", list(&buckets, bound)},
			{"native_histogram_bucket_factor", number(&factor, 0, 1e9)},
			{"native_histogram_max_buckets", whole(&most, 0, math.MaxInt32)},
		})
		if factor > 0 {
			o.NativeFactor = max(factor, 1)
		}
		if most > 0 {
			o.NativeBuckets = most
		}
		if len(buckets) > 0 {
			o.Buckets = bucketBounds(d, seen["buckets"], join(path, "buckets"), buckets)
		}
	}
}

// bound decodes a bucket, which can be infinite in the spelling of YAML.
func bound(to *float64) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		if word := strings.ToLower(strings.TrimPrefix(n.Value, "+")); n.Kind == yaml.ScalarNode && (word == ".inf" || word == "inf") {
			*to = math.Inf(1)
			return
		}
		number(to, -math.MaxFloat64, math.MaxFloat64)(d, n, path)
	}
}

// bucketBounds returns the bounds that a histogram can have: the last one, if it
// is +Inf, is always there.
func bucketBounds(d *decoder, n *yaml.Node, path string, buckets []float64) []float64 {
	var bounds []float64
	for i, b := range buckets {
		at, field := n.Content[i], path+"["+strconv.Itoa(i)+"]"
		switch {
		case i > 0 && b <= buckets[i-1]:
			d.errorf(at, field, "%v is not greater than the bucket before it", b)
		case math.IsInf(b, 1):
		case b <= 0:
			d.warnf(at, field, "%v is left out: buckets are greater than 0 here", b)
		default:
			bounds = append(bounds, b)
		}
	}
	if bounds == nil && len(d.errs) == 0 {
		d.errorf(n, path, "no bucket is greater than 0")
	}
	return bounds
}
