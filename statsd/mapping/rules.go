package mapping

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"time"
)

// Kind is the kind of a sample.
type Kind uint8

// The kinds of samples. AnyKind is for rules only. Rules for a kind never apply
// to sets, for which the file format has no word.
const (
	AnyKind  Kind = iota
	Counter       // c
	Gauge         // g
	Observer      // ms, h and d
	Set           // s

	kinds = 5
)

// String returns the word for k in mapping files, "" for AnyKind.
func (k Kind) String() string { return [kinds]string{"", "counter", "gauge", "observer", "set"}[k] }

// Label is a label of a rule. Its value can be a template.
type Label struct{ Name, Value string }

// Rule maps the names that match a pattern.
type Rule struct {
	// Match is a glob, or a regular expression in RE2 syntax if Regex is set.
	// "*" in a glob is exactly one segment between dots; a regular expression
	// matches anywhere in the name unless it is anchored.
	Match string
	Regex bool
	// Partial lets "*" of a glob also be a part of a segment, as in "api-*".
	Partial bool
	// Kind restricts the rule to samples of a kind.
	Kind Kind

	// Name is the name of the metric. In it and in the values of Labels, $1 or
	// ${1} is what the first "*" or group matched, and $0 the received name, or
	// for a regular expression its match. References that do not exist
	// are empty.
	Name   string
	Labels []Label
	// HonorLabels keeps the value of a received tag with the name of a label.
	// Default: the label wins.
	HonorLabels bool
	// Drop discards the samples.
	Drop bool

	// Scale multiplies values. 0 means 1; [Rule.Zero] makes them 0.
	Scale float64
	Zero  bool
	// TTL ends series that got no sample for that long. 0 means Config.TTL.
	TTL time.Duration
	// Help is the help text of the metric.
	Help string
	// Observe configures the metrics of observers. Nil means Config.Observe.
	Observe *Observe

	// Position is where the rule was written, as file:line:column. Optional.
	Position string
}

// Observe is the form of the metrics of observers: a summary if it has
// quantiles, otherwise a histogram.
type Observe struct {
	Quantiles []float64     // in [0, 1]
	MaxAge    time.Duration // window of the quantiles; 0 means 10 minutes
	Steps     int           // in which the window moves; 0 means 5
	Buckets   []float64     // upper bounds; nil means the default

	NativeFactor  float64 // growth of the buckets of native histograms; 0 means the resolution of the bins
	NativeBuckets int     // most buckets of a native histogram; 0 means no limit
}

// Scaled returns the value of a sample after the rule has scaled it.
func (r *Rule) Scaled(v float64) float64 {
	if r.Zero {
		return 0
	}
	if r.Scale != 0 {
		return v * r.Scale
	}
	return v
}

// Scales reports whether the rule changes values.
func (r *Rule) Scales() bool { return r.Zero || r.Scale != 0 && r.Scale != 1 }

// Config is a list of rules.
type Config struct {
	Rules []Rule
	// MostLiteral prefers, segment by segment, a literal match to "*" instead of
	// the first rule in the list.
	MostLiteral bool
	// DropUnmatched drops samples that no rule matches. Default: they keep their
	// name.
	DropUnmatched bool
	// TTL is for rules without one, and for samples that no rule matches. 0 means
	// the default of their kind.
	TTL time.Duration
	// Observe is for rules without one, and for samples that no rule matches.
	// Nil: the default of the server.
	Observe *Observe
}

// MaxRules is the largest number of rules.
const MaxRules = 1<<16 - 4

// Rules are compiled rules.
type Rules struct {
	cfg     Config
	rules   []compiled
	globs   trie
	regexes []int // rules with regular expressions, in order
}

// compiled is what a rule needs to be applied.
type compiled struct {
	regex    *regexp.Regexp // nil for a glob
	name     template
	labels   []template
	captures int
	shadowed int // the first rule that leaves nothing to this one, or -1
}

// RuleError reports an invalid rule.
type RuleError struct {
	Rule  int    // index in Config.Rules
	Field string // as in the file format: match, name, labels
	Err   error
}

// Error returns the error with the number of the rule, from 1.
func (e *RuleError) Error() string {
	return fmt.Sprintf("mapping: rule %d: %s: %v", e.Rule+1, e.Field, e.Err)
}

// Unwrap returns the reason.
func (e *RuleError) Unwrap() error { return e.Err }

// New compiles rules. The error is a [*RuleError], unless there are too many
// rules. The caller must not change c afterwards.
func New(c Config) (*Rules, error) {
	if len(c.Rules) > MaxRules {
		return nil, fmt.Errorf("mapping: %d rules are more than the limit of %d", len(c.Rules), MaxRules)
	}
	r := &Rules{cfg: c, rules: make([]compiled, len(c.Rules)), globs: trie{newNode(), c.MostLiteral}}
	for i := range c.Rules {
		if err := r.compile(i); err != nil {
			return nil, err
		}
	}
	r.globs.root.finish()
	r.findShadowed()
	return r, nil
}

func (r *Rules) compile(i int) error {
	rule, c := &r.cfg.Rules[i], &r.rules[i]
	fail := func(field string, err error) error { return &RuleError{i, field, err} }
	if err := CheckName(rule.Name); err != nil {
		return fail("name", err)
	}
	for _, l := range rule.Labels {
		if err := CheckLabel(l.Name); err != nil {
			return fail("labels", err)
		}
	}
	if math.IsNaN(rule.Scale) || math.IsInf(rule.Scale, 0) {
		return fail("scale", fmt.Errorf("%v is not a finite number", rule.Scale))
	}
	c.shadowed = -1
	if rule.Regex {
		re, err := regexp.Compile(rule.Match)
		if err != nil {
			return fail("match", err)
		}
		c.regex = re
		r.regexes = append(r.regexes, i)
		return nil
	}
	if err := CheckGlob(rule.Match, rule.Partial); err != nil {
		return fail("match", err)
	}
	c.captures = r.globs.add(rule.Match, rule.Kind, i)
	c.name, _ = newTemplate(rule.Name, c.captures)
	for _, l := range rule.Labels {
		label, _ := newTemplate(l.Value, c.captures)
		c.labels = append(c.labels, label)
	}
	return nil
}

// findShadowed notes the rules that can never match.
func (r *Rules) findShadowed() {
	type key struct {
		match string
		kind  Kind
	}
	seen := make(map[key]int)
	for i := range r.rules {
		rule := &r.cfg.Rules[i]
		if !rule.Regex {
			if by, ok := r.globs.covering(rule.Match, rule.Kind, i); ok {
				r.rules[i].shadowed = by
			}
			continue
		}
		for _, k := range []Kind{AnyKind, rule.Kind} {
			if by, ok := seen[key{rule.Match, k}]; ok && (r.rules[i].shadowed < 0 || by < r.rules[i].shadowed) {
				r.rules[i].shadowed = by
			}
		}
		if _, ok := seen[key{rule.Match, rule.Kind}]; !ok {
			seen[key{rule.Match, rule.Kind}] = i
		}
	}
}

// Len returns the number of rules.
func (r *Rules) Len() int { return len(r.rules) }

// Rule returns rule number i, from 0. The caller must not change it.
func (r *Rules) Rule(i int) *Rule { return &r.cfg.Rules[i] }

// Shadowed returns the number of an earlier rule that matches every name that
// rule i matches, so that rule i never applies. ok is false if there is none.
func (r *Rules) Shadowed(i int) (by int, ok bool) {
	by = r.rules[i].shadowed
	return by, by >= 0
}

// Config returns what New was called with. The caller must not change it.
func (r *Rules) Config() *Config { return &r.cfg }

// Match is a rule that applies to a name.
type Match struct {
	rules    *Rules
	rule     int
	subject  string
	captures []string // of a glob
	indexes  []int    // of a regular expression
}

// Find returns the rule for a sample of kind k, which must not be AnyKind, with
// the given name, without its tags.
func (r *Rules) Find(name string, k Kind) (m Match, ok bool) {
	if i, captures := r.globs.find(name, k); i >= 0 {
		return Match{rules: r, rule: i, subject: name, captures: captures}, true
	}
	for _, i := range r.regexes {
		if rule := &r.cfg.Rules[i]; rule.Kind != AnyKind && rule.Kind != k {
			continue
		}
		if at := r.rules[i].regex.FindStringSubmatchIndex(name); at != nil {
			return Match{rules: r, rule: i, subject: name, indexes: at}, true
		}
	}
	return Match{}, false
}

// Index returns the number of the rule, from 0.
func (m *Match) Index() int { return m.rule }

// Rule returns the rule. The caller must not change it.
func (m *Match) Rule() *Rule { return m.rules.Rule(m.rule) }

// Name returns the name of the metric. It can be empty if the template is.
func (m *Match) Name() string {
	c := &m.rules.rules[m.rule]
	return m.expand(c, m.Rule().Name, &c.name)
}

// Label returns the value of label i of the rule.
func (m *Match) Label(i int) string {
	c, t := &m.rules.rules[m.rule], (*template)(nil)
	if c.regex == nil {
		t = &c.labels[i]
	}
	return m.expand(c, m.Rule().Labels[i].Value, t)
}

func (m *Match) expand(c *compiled, text string, t *template) string {
	if c.regex != nil {
		return string(c.regex.ExpandString(nil, text, m.subject, m.indexes))
	}
	return t.expand(m.subject, m.captures)
}

// SortLabels sorts labels by name.
func SortLabels(ls []Label) {
	slices.SortFunc(ls, func(a, b Label) int { return cmp.Compare(a.Name, b.Name) })
}
