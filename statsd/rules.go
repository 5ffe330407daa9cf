package statsd

import (
	"cmp"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/statsd-admin/statsd-admin/statsd/line"
	"github.com/statsd-admin/statsd-admin/statsd/mapping"
	"github.com/statsd-admin/statsd-admin/statsd/report"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// ruleset is a generation of mapping rules. Workers see a new one only after
// they forgot all cached decisions; see Server.SetRules.
type ruleset struct {
	rules *mapping.Rules
	era   uint16 // counts rulesets
	uses  []*ruleUse
	kept  []keeping // by rule; the last one is for names that no rule matches
}

// ruleUse counts the samples that a rule applied to. Rulesets share that of a rule that
// both have.
type ruleUse struct {
	matches atomic.Uint64
	last    atomic.Int64 // unix time in nanoseconds; 0: never
}

// keeping says how the series of a rule are kept.
type keeping struct {
	ttl     time.Duration        // 0: that of the kind
	form    *store.HistogramForm // nil: the default
	timers  *store.HistogramForm // form in milliseconds
	summary bool                 // form has quantiles
	sets    setWindow
}

// ruleNumber is the number of a rule in caches and targets: its index plus 1.
type ruleNumber uint16

const (
	noRule ruleNumber = 0

	// Numbers above the rules say why samples are dropped.

	dropNotAllowed ruleNumber = 1<<16 - 3 // Filters.Allow
	dropDenied     ruleNumber = 1<<16 - 2 // Filters.Deny
	dropUnmatched  ruleNumber = 1<<16 - 1
)

func (n ruleNumber) isRule() bool { return n != noRule && n <= mapping.MaxRules }

// filter returns the filter that drops the samples, or "".
func (n ruleNumber) filter() string {
	switch n {
	case dropNotAllowed:
		return "allow"
	case dropDenied:
		return "deny"
	}
	return ""
}

// ruled is what a registry remembers of rules. registry.mu guards it.
type ruled struct {
	scopes   map[scopeKey]*store.Scope
	forms    []*store.HistogramForm          // one of each kind
	odd      map[uint32]*store.HistogramForm // of the histograms, by cell, that do not have the default
	reshaped map[uint32]bool                 // families of histograms that get another form
}

// note remembers the form of the histogram in cell x.
func (r *ruled) note(x uint32, form, usual *store.HistogramForm) {
	if form == usual {
		return
	}
	if r.odd == nil {
		r.odd = make(map[uint32]*store.HistogramForm)
	}
	r.odd[x] = form
}

// scopeKey identifies the settings of a scope for series of rules.
type scopeKey struct {
	ttl  time.Duration
	form *store.HistogramForm
}

// helpTexts are the help texts of families, by full name.
type helpTexts struct {
	ended atomic.Int64 // families since the last call of retain
	other string       // text of families without one

	mu     sync.RWMutex // taken after registry.mu
	byName map[string]string
}

// describe returns the description of a family of received series.
func (h *helpTexts) describe(family string) store.Description {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return store.Description{Help: cmp.Or(h.byName[family], h.other)}
}

func (h *helpTexts) set(family, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byName == nil {
		h.byName = make(map[string]string)
	}
	h.byName[family] = text
}

// stale reports whether so many families have ended that it is worth a look at all
// texts.
func (h *helpTexts) stale() bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.ended.Load() > int64(len(h.byName)/8)
}

// retain removes the texts of all families but those in keep.
func (h *helpTexts) retain(keep func(family string) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended.Store(0)
	maps.DeleteFunc(h.byName, func(family, _ string) bool { return !keep(family) })
}

func (h *helpTexts) clear() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.byName = nil
}

// newRuleset prepares rules. The matches of rules that the set before had are
// kept.
func (r *registry) newRuleset(rules *mapping.Rules, before *ruleset) *ruleset {
	n := rules.Len()
	s := &ruleset{rules: rules, uses: make([]*ruleUse, n), kept: make([]keeping, n+1)}
	type key struct {
		match string
		regex bool
		kind  mapping.Kind
	}
	keyOf := func(rule *mapping.Rule) key { return key{rule.Match, rule.Regex, rule.Kind} }
	old := make(map[key]int)
	if before != nil {
		s.era = before.era + 1
		for i := range before.uses {
			if _, twice := old[keyOf(before.rules.Rule(i))]; !twice {
				old[keyOf(before.rules.Rule(i))] = i
			}
		}
	}
	all := rules.Config()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range n {
		rule := rules.Rule(i)
		if j, ok := old[keyOf(rule)]; ok {
			delete(old, keyOf(rule))
			s.uses[i] = before.uses[j] // workers still count there
		} else {
			s.uses[i] = new(ruleUse)
		}
		s.kept[i] = r.keeping(cmp.Or(rule.TTL, all.TTL), cmp.Or(rule.Observe, all.Observe))
	}
	s.kept[n] = r.keeping(all.TTL, all.Observe)
	return s
}

// keeping returns how series with these settings are kept. r.mu must be held.
func (r *registry) keeping(ttl time.Duration, o *mapping.Observe) keeping {
	if o == nil {
		return keeping{ttl, r.cfg.Histograms, r.cfg.Histograms, summarizes(r.cfg.Histograms), r.unruled.sets}
	}
	form := store.HistogramForm{
		Buckets: o.Buckets, Quantiles: o.Quantiles, Window: o.MaxAge, Steps: o.Steps,
		NativeFactor: o.NativeFactor, NativeBuckets: o.NativeBuckets,
	}
	if form.Quantiles != nil && form.Window == 0 {
		form.Window = defaultWindow
	}
	timers := form
	if r.naming.NetworkSeconds {
		timers.Buckets = nil
		for _, b := range form.Buckets {
			timers.Buckets = append(timers.Buckets, b*1000)
		}
	}
	window := r.unruled.sets
	if o.MaxAge != 0 || o.Steps != 0 {
		window = newSetWindow(cmp.Or(o.MaxAge, r.cfg.SetWindow), o.Steps)
	}
	return keeping{ttl, r.sharedForm(form), r.sharedForm(timers), summarizes(&form), window}
}

// What summaries and sets cover by default.
const (
	defaultWindow = 10 * time.Minute
	defaultSteps  = 5
)

func summarizes(f *store.HistogramForm) bool { return f != nil && len(f.Quantiles) > 0 }

// sharedForm returns one pointer for all equal forms. r.mu must be held.
func (r *registry) sharedForm(f store.HistogramForm) *store.HistogramForm {
	for _, known := range r.ruled.forms {
		if reflect.DeepEqual(*known, f) {
			return known
		}
	}
	r.ruled.forms = append(r.ruled.forms, &f)
	return &f
}

// mapName applies rules to w.
func (r *registry) mapName(w *wanted, s *ruleset) {
	if s == nil {
		return
	}
	w.era = s.era
	w.kept = s.kept[len(s.kept)-1]
	m, ok := s.rules.Find(w.name, kindOf(w.group, w.typ))
	if !ok {
		if s.rules.Config().DropUnmatched {
			w.rule, w.dropped = dropUnmatched, true
		}
		return
	}
	rule := m.Rule()
	w.rule, w.kept, w.help = ruleNumber(m.Index()+1), s.kept[m.Index()], rule.Help
	if rule.Drop {
		w.dropped = true
		return
	}
	l := &r.cfg.Limits
	if w.name = m.Name(); len(w.name) > l.NameBytes {
		w.reason = line.NameTooLong
	}
	for i, label := range rule.Labels {
		value := m.Label(i)
		if len(value) > l.TagValueBytes {
			w.reason = line.TagTooLong
			return
		}
		w.setLabel(r, label.Name, value, rule.HonorLabels)
	}
	slices.SortFunc(w.tags, func(a, b tags.Tag) int { return strings.Compare(a.Name, b.Name) })
}

// setLabel sets a label of a rule. An empty value removes it.
func (w *wanted) setLabel(r *registry, name, value string, honor bool) {
	var buf [128]byte
	i := slices.IndexFunc(w.tags, func(t tags.Tag) bool {
		return t.Name == name || string(r.naming.AppendLabel(buf[:0], t.Name)) == name
	})
	switch {
	case i >= 0 && honor:
	case i >= 0 && value == "":
		w.tags = slices.Delete(w.tags, i, i+1)
	case i >= 0:
		w.tags[i] = tags.Tag{Name: name, Value: value}
	case value != "":
		w.tags = append(w.tags, tags.Tag{Name: name, Value: value})
	}
}

// kindOf returns the kind of samples for rules.
func kindOf(g group, typ line.Type) mapping.Kind {
	switch {
	case typ == line.Counter:
		return mapping.Counter // also if it is kept as a gauge
	case g == gauges:
		return mapping.Gauge
	case g == sets:
		return mapping.Set
	}
	return mapping.Observer
}

// scopeOf returns the scope for the stat of w. r.mu must be held.
func (r *registry) scopeOf(w *wanted) *store.Scope {
	k := scopeKey{ttl: w.kept.ttl}
	if w.group == histograms {
		k.form = w.form()
	}
	if k.ttl == 0 && (w.group != histograms || k.form == r.cfg.Histograms) {
		if w.group == sets {
			return r.setScope
		}
		return r.scope
	}
	sc := r.ruled.scopes[k]
	if sc == nil {
		t := r.cfg.TTL
		ttl := store.TTL{Counter: t.Counter, Gauge: t.Gauge, Histogram: t.Histogram}
		if k.ttl != 0 {
			ttl = store.TTL{Counter: k.ttl, Gauge: k.ttl, Histogram: k.ttl}
		}
		sc = r.cfg.Store.ScopeWith(r.cfg.Prefix, store.ScopeOptions{Network: true, ExtractTags: r.cfg.ExtractTags, TTL: ttl, Histograms: k.form})
		if r.ruled.scopes == nil {
			r.ruled.scopes = make(map[scopeKey]*store.Scope)
		}
		r.ruled.scopes[k] = sc
	}
	return sc
}

func (w *wanted) form() *store.HistogramForm {
	if w.typ == line.Timer {
		return w.kept.timers
	}
	return w.kept.form
}

// checkForm notes families of histograms that older rules gave another form than
// w has, so that the next flush replaces them. x is the cell of w if it is
// known. r.mu must be held.
func (r *registry) checkForm(w *wanted, x uint32, known bool) {
	if w.group != histograms {
		return
	}
	number, ok := r.familyNamed(w.metric)
	if !ok {
		return
	}
	n := r.families.named.At(number)
	switch {
	case n.era == w.era:
	case n.summary != w.kept.summary, known && r.formOf(x) != w.form():
		if r.ruled.reshaped == nil {
			r.ruled.reshaped = make(map[uint32]bool)
		}
		r.ruled.reshaped[number] = true
	case known:
		n.era = w.era
		r.families.named.Set(number, n)
	}
}

// formOf returns the form of the histogram of cell x. r.mu must be held.
func (r *registry) formOf(x uint32) *store.HistogramForm {
	if f, ok := r.ruled.odd[x]; ok {
		return f
	}
	return r.cfg.Histograms
}

// takeReshaped returns the cells of the histograms that get another form.
func (r *registry) takeReshaped() map[uint32]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ruled.reshaped) == 0 {
		return nil
	}
	cells := make(map[uint32]bool)
	for x := range r.histogramBytes.All() {
		if r.ruled.reshaped[r.cells.family(x)] {
			cells[x] = true
		}
	}
	r.ruled.reshaped = nil
	return cells
}

// replaceReshaped ends the histograms that get another form.
func (s *Server) replaceReshaped() {
	cells := s.registry.takeReshaped()
	if len(cells) == 0 {
		return
	}
	s.holdAll(func() {
		s.cfg.Store.RemoveMarked(func(mark uint32) bool { return cells[mark-1] })
	})
	s.cfg.Logger.Info("statsd: replaced histograms whose form the mapping rules changed; they start from zero", "count", len(cells))
}

// dropHelp removes the help texts of families that ended.
func (r *registry) dropHelp() {
	if !r.help.stale() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.help.retain(func(full string) bool {
		var buf [128]byte
		metric, _ := r.naming.AppendMetric(buf[:0], full, true, false)
		_, ok := r.familyNamed(string(metric))
		return ok
	})
}

// SetRules replaces the mapping rules; nil removes them. It waits for nothing:
// each reader uses the new rules from its next batch of lines on, so no line is
// lost. Histograms whose form changes start from zero at the flush after their
// next sample. A time to live applies to new series.
func (s *Server) SetRules(rules *mapping.Rules) {
	r := s.registry
	r.rulesMu.Lock()
	defer r.rulesMu.Unlock()
	before := r.rules.Load()
	if rules == nil {
		if before == nil {
			return
		}
		rules, _ = mapping.New(mapping.Config{}) // no rule that can be invalid
	}
	r.help.clear()
	r.rules.Store(r.newRuleset(rules, before))
	s.metrics.rules.Set(uint64(rules.Len()))
}

// ReloadRules replaces the mapping rules with the result of load. If load
// fails, the rules stay and the error is returned. The outcome is counted, and
// included in the result of [Server.Mapping].
func (s *Server) ReloadRules(load func() (*mapping.Rules, error)) error {
	rules, err := load()
	r := reload{at: s.cfg.Now(), err: err}
	if err != nil {
		s.metrics.reloads[1].Inc()
	} else {
		s.SetRules(rules)
		s.metrics.reloads[0].Inc()
	}
	s.lastReload.Store(&r)
	return err
}

// reload is the outcome of a reload of rules.
type reload struct {
	at  time.Time
	err error
}

// match counts samples that a rule applied to, or that are dropped without one. rule is
// not noRule.
func (w *worker) match(rule ruleNumber, samples uint64) {
	if !rule.isRule() {
		if by := rule.filter(); by != "" {
			w.server.metrics.filtered[by].Add(samples)
		} else {
			w.tally.unmatched += samples
		}
		return
	}
	if w.matches[rule-1] == 0 {
		w.matched = append(w.matched, rule)
	}
	w.matches[rule-1] += uint32(samples)
}

// publishMatches adds the matches of a batch to the rules.
func (w *worker) publishMatches() {
	if len(w.matched) == 0 {
		return
	}
	now := w.server.cfg.Now().UnixNano()
	for _, rule := range w.matched {
		use, n, action := w.rules.uses[rule-1], uint64(w.matches[rule-1]), 0
		use.matches.Add(n)
		use.last.Store(now)
		if w.rules.rules.Rule(int(rule - 1)).Drop {
			action = 1
		}
		w.server.metrics.actions[action].Add(n)
		w.matches[rule-1] = 0
	}
	w.matched = w.matched[:0]
}

// scale multiplies the values of a sample as its rule says.
func (w *worker) scale(rule ruleNumber, s *line.Sample) line.Reason {
	if !rule.isRule() || s.Type == line.Set {
		return line.OK
	}
	r := w.rules.rules.Rule(int(rule - 1))
	if !r.Scales() {
		return line.OK
	}
	counter := s.Type == line.Counter && !w.line.SignedCounters
	values := w.line.Values[s.From:s.To]
	for i := range values {
		v := r.Scaled(values[i].Number)
		switch {
		case math.IsNaN(v) || math.IsInf(v, 0), counter && v/s.Rate > maxCount:
			return line.OutOfRange
		case counter && v < 0:
			return line.NegativeCounter
		}
		values[i].Number = v
	}
	return line.OK
}

// maxCount is the largest increment of a counter, 2^53.
const maxCount = 1 << 53

func (s *ruleset) describe(n ruleNumber) *report.Rule {
	if !n.isRule() {
		return nil
	}
	rule := s.rules.Rule(int(n - 1))
	out := &report.Rule{Number: int(n), Match: rule.Match, Position: rule.Position}
	if rule.Scales() {
		factor := rule.Scaled(1)
		out.Scale = &factor
	}
	return out
}

// Mapping describes the mapping rules and how often each matched.
func (s *Server) Mapping() report.Mapping {
	m := report.Mapping{
		Mapped: s.metrics.actions[0].Total(), Dropped: s.metrics.actions[1].Total(), Unmatched: s.metrics.unmatched.Total(),
		Reloads: s.metrics.reloads[0].Total(), FailedReloads: s.metrics.reloads[1].Total(),
	}
	if last := s.lastReload.Load(); last != nil {
		m.Reloaded = last.at
		if last.err != nil {
			m.Error = last.err.Error()
		}
	}
	set := s.registry.rules.Load()
	if set == nil {
		return m
	}
	cfg := set.rules.Config()
	m.MostLiteral, m.DropUnmatched = cfg.MostLiteral, cfg.DropUnmatched
	for i := range set.uses {
		rule := set.rules.Rule(i)
		u := report.RuleUse{
			Rule: *set.describe(ruleNumber(i + 1)), Regex: rule.Regex, Kind: rule.Kind.String(), Name: rule.Name,
			Drops: rule.Drop, Matches: set.uses[i].matches.Load(),
		}
		if last := set.uses[i].last.Load(); last != 0 {
			u.Last = time.Unix(0, last)
		}
		if by, ok := set.rules.Shadowed(i); ok {
			u.ShadowedBy = by + 1
		}
		m.Rules = append(m.Rules, u)
	}
	return m
}
