package tags

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/statsd-admin/statsd-admin/internal/product"
)

// DefaultProduct is the product name used when [Config].Product is empty: "proxy".
const DefaultProduct = product.Default

// Tag is one label of a stat.
type Tag struct{ Name, Value string }

// String returns the tag with a name and a value.
func String(name, value string) Tag { return Tag{Name: name, Value: value} }

// Config are the settings of an [Extractor].
type Config struct {
	// Product is the prefix of the names of default tags, as in
	// "proxy.cluster_name". Empty means [DefaultProduct].
	Product string

	// UseDefaults turns the default rules on.
	UseDefaults bool

	// CommandLine are tags with fixed values for every name.
	CommandLine []Tag

	// Tags are the configured rules, in order. A name may occur repeatedly.
	Tags []Spec

	// AllowOverrides gives configured rules precedence over default rules for
	// the same tag. Otherwise default rules come first.
	AllowOverrides bool
}

// Spec is one configured rule. With neither a Regex nor a Fixed value it stands
// for the default rules of that name.
type Spec struct {
	// Name is the tag's name. Any character is allowed.
	Name string

	// Regex is searched for in the full name. What its first group matches is
	// removed; the value is what its second group matches or, if there is no
	// second group or it is empty, the first. An expression without a group
	// never yields a tag.
	Regex string

	// Tokens is a pattern of dot-separated tokens that the whole name must
	// match: "*" is one token, "**" any number, at least one at the end, and
	// "$" the token that is the value, which is removed from the name.
	Tokens string

	// Fixed is the value every name gets. It may point to an empty text.
	Fixed *string
}

// Extractor applies rules to names.
type Extractor struct {
	// programs holds, by first token, the rules worth trying for such names, in
	// the order of application. other is for all names with another first token
	// or without a dot.
	programs map[string]*program
	other    *program
	product  string
}

// Product returns the product name in the names of default tags.
func (e *Extractor) Product() string { return e.product }

// program holds the rules for names with one first token. Guards are separate
// from rules because most rules fail at their guard: a name costs a walk over a
// few packed words.
type program struct {
	guards []guard
	rules  []*rule // as many as guards
}

// New returns an extractor for c. Errors name the tag.
func New(c Config) (*Extractor, error) {
	name := cmp.Or(c.Product, DefaultProduct)
	defaults := defaultRules(name)

	var configured []rule
	for _, spec := range c.Tags {
		rules, err := spec.rules(defaults)
		if err != nil {
			return nil, err
		}
		configured = append(configured, rules...)
	}

	var all []rule
	if c.UseDefaults {
		all = append(all, defaults...)
		if c.AllowOverrides {
			all, configured = override(all, configured)
		}
	}
	for _, tag := range c.CommandLine {
		if tag.Name == "" {
			return nil, errNoName
		}
		all = append(all, fixedRule(tag.Name, tag.Value))
	}
	all = append(all, configured...)
	markShared(all)
	e := compile(all)
	e.product = name
	return e, nil
}

// errNoName has the wording that users of such configurations know.
var errNoName = errors.New("tag_name cannot be empty")

func (s Spec) rules(defaults []rule) ([]rule, error) {
	switch {
	case s.Name == "":
		return nil, errNoName
	case s.Fixed != nil && s.Regex != "":
		return nil, fmt.Errorf("tags: tag %q has a regex and a fixed value, only one of them is allowed", s.Name)
	case s.Tokens != "" && (s.Fixed != nil || s.Regex != ""):
		return nil, fmt.Errorf("tags: tag %q has tokens and a regex or fixed value, only one of them is allowed", s.Name)
	case s.Tokens != "":
		if err := CheckTokens(s.Tokens); err != nil {
			return nil, fmt.Errorf("tags: tag %q: %w", s.Name, err)
		}
		return []rule{tokenRule(s.Name, s.Tokens)}, nil
	case s.Fixed != nil:
		return []rule{fixedRule(s.Name, *s.Fixed)}, nil
	case s.Regex != "":
		r, err := regexRule(s.Name, s.Regex)
		if err != nil {
			return nil, fmt.Errorf("tags: tag %q: %w", s.Name, err)
		}
		return []rule{r}, nil
	}
	var found []rule
	for _, d := range defaults {
		if d.tag == s.Name {
			found = append(found, d)
		}
	}
	if found == nil {
		//lint:ignore ST1005 users of such configurations know this wording
		return nil, fmt.Errorf("No regex specified for tag specifier and no default regex for name: '%s'", s.Name)
	}
	return found, nil
}

// override puts each configured rule whose tag has a default rule before the
// first of those, and returns the remaining configured rules apart.
func override(defaults, configured []rule) (merged, rest []rule) {
	before := map[string][]rule{}
	tiedToNothing := map[string]bool{} // tags with a default rule in the first group
	isDefault := map[string]bool{}
	for _, d := range defaults {
		isDefault[d.tag] = true
		if d.first == "" {
			tiedToNothing[d.tag] = true
		}
	}
	for _, c := range configured {
		if !isDefault[c.tag] {
			rest = append(rest, c)
			continue
		}
		if tiedToNothing[c.tag] {
			// Staying in the second group, it would lose to that default rule.
			c.first = ""
		}
		before[c.tag] = append(before[c.tag], c)
	}
	for _, d := range defaults {
		merged = append(merged, before[d.tag]...)
		delete(before, d.tag)
		merged = append(merged, d)
	}
	return merged, rest
}

// markShared marks the rules whose tag has other rules too. Only these need
// the check whether the tag has been set.
func markShared(rules []rule) {
	count := map[string]int{}
	for _, r := range rules {
		count[r.tag]++
	}
	for i := range rules {
		rules[i].shared = count[rules[i].tag] > 1
	}
}

// compile sorts rules into one program per first token.
func compile(rules []rule) *Extractor {
	e := &Extractor{programs: map[string]*program{}, other: programFor(rules, "")}
	add := func(token string) {
		if e.programs[token] == nil && token != "" {
			e.programs[token] = programFor(rules, token)
		}
	}
	for _, r := range rules {
		add(r.first)
		for _, token := range r.firsts {
			add(token)
		}
	}
	return e
}

// programFor returns the rules worth trying for names whose first token is token,
// or any that no rule is tied to, if token is empty.
func programFor(rules []rule, token string) *program {
	var loose, tied []*rule
	for i := range rules {
		switch r := &rules[i]; {
		case r.first != "":
			if r.first == token {
				tied = append(tied, r)
			}
		case r.possible(token):
			loose = append(loose, r)
		}
	}
	p := &program{rules: append(loose, tied...)}
	for _, r := range p.rules {
		p.guards = append(p.guards, r.guard())
	}
	return p
}

// Extract returns the base name of name, and dst with the tags appended in
// order. Values are substrings of name; the base name is name itself when no
// rule removed anything.
func (e *Extractor) Extract(name string, dst []Tag) (extracted string, tags []Tag) {
	var cutsArray [cutsOnStack]span
	cuts, dst := e.run(name, dst, cutsArray[:0], nil)
	if len(cuts) == 0 {
		return name, dst
	}
	n := len(name)
	for _, c := range cuts {
		n -= c.end - c.start
	}
	var b strings.Builder
	b.Grow(n)
	at := 0
	for _, c := range cuts {
		b.WriteString(name[at:c.start])
		at = c.end
	}
	b.WriteString(name[at:])
	return b.String(), dst
}

// Fixed returns the tags that every name gets, in their order.
func (e *Extractor) Fixed() (tags []Tag) {
	for _, r := range e.other.rules {
		if r.kind == fixed && !hasTag(tags, r.tag) {
			tags = append(tags, Tag{r.tag, r.value})
		}
	}
	return tags
}

// ExtractInto is Extract for callers that keep a buffer: the base name is
// appended to buf. With the default rules it allocates only when buf or dst
// have to grow, or for names of more than 47 tokens.
func (e *Extractor) ExtractInto(name string, buf []byte, dst []Tag) (extracted []byte, tags []Tag) {
	var cutsArray [cutsOnStack]span
	cuts, dst := e.run(name, dst, cutsArray[:0], nil)
	at := 0
	for _, c := range cuts {
		buf = append(buf, name[at:c.start]...)
		at = c.end
	}
	return append(buf, name[at:]...), dst
}

// cutsOnStack is how many pieces a name may lose before run allocates.
const cutsOnStack = 8

// run applies the rules to name. It returns the pieces to remove, ascending
// and apart from each other, and appends the steps unless steps is nil.
func (e *Extractor) run(name string, dst []Tag, cuts []span, steps *[]Step) ([]span, []Tag) {
	var bounds [boundsOnStack]int32
	n := tokenized{text: name, bounds: appendBounds(bounds[:0], name)}
	p := e.other
	if n.len() > 1 {
		if tied, ok := e.programs[n.token(0)]; ok {
			p = tied
		}
	}
	first := len(dst)
	for i, g := range p.guards {
		if !g.pass(n) {
			continue
		}
		r := p.rules[i]
		if r.shared && hasTag(dst[first:], r.tag) {
			continue
		}
		if r.kind == fixed {
			dst = append(dst, Tag{r.tag, r.value})
			if steps != nil {
				*steps = append(*steps, r.step(name, r.value, span{}))
			}
			continue
		}
		m := r.find(name, n)
		if m.cut.start == m.cut.end {
			continue
		}
		value := name[m.value.start:m.value.end]
		if r.forbidden != "" && value == r.forbidden {
			continue
		}
		dst = append(dst, Tag{r.tag, value})
		cuts = addCut(cuts, m.cut)
		if steps != nil {
			*steps = append(*steps, r.step(name, value, m.cut))
		}
	}
	return cuts, dst
}

func hasTag(tags []Tag, name string) bool {
	return slices.ContainsFunc(tags, func(t Tag) bool { return t.Name == name })
}

// addCut inserts c into cuts, which are ascending and apart, and unites it with
// those it overlaps or touches.
func addCut(cuts []span, c span) []span {
	i := len(cuts)
	for i > 0 && cuts[i-1].end >= c.start {
		i-- // cuts[i:] end at or after the start of c
	}
	j := i
	for j < len(cuts) && cuts[j].start <= c.end {
		c.start, c.end = min(c.start, cuts[j].start), max(c.end, cuts[j].end)
		j++
	}
	return slices.Replace(cuts, i, j, c)
}
