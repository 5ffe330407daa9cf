package exposition

import (
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/statsd-admin/statsd-admin/render/naming"
	"github.com/statsd-admin/statsd-admin/store"
)

// scrape is an exposition as the Prometheus server parses it.
type scrape struct {
	types  map[string]model.MetricType
	values map[string]float64 // by name and labels
	native map[string]*histogram.Histogram
	sets   map[string]labels.Labels
	since  map[string]int64 // start times, Unix milliseconds; nil: the format has none
}

var (
	metricName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	labelName  = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
)

var unescape = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")

// parse parses an exposition with the Prometheus server's parser. It fails the test
// if a metric has two TYPE lines or a series occurs twice.
func parse(t *testing.T, body []byte, contentType string) *scrape {
	t.Helper()
	p, err := textparse.New(body, contentType, nil, textparse.ParserOptions{KeepClassicOnClassicAndNativeHistograms: true, OpenMetricsSkipSTSeries: true})
	if err != nil {
		t.Fatal(err)
	}
	any := strings.Contains(contentType, "escaping=allow-utf-8")
	s := &scrape{map[string]model.MetricType{}, map[string]float64{}, map[string]*histogram.Histogram{}, map[string]labels.Labels{}, nil}
	if !strings.HasPrefix(contentType, "text/plain") {
		s.since = map[string]int64{}
	}
	for {
		e, err := p.Next()
		if errors.Is(err, io.EOF) {
			return s
		}
		if err != nil {
			t.Fatalf("the parser refuses the exposition: %v\n%s", err, body)
		}
		switch e {
		case textparse.EntryType:
			name, typ := p.Type()
			if any && !strings.Contains(contentType, "protobuf") { // those of text are as they stand there
				name = []byte(unescape.Replace(string(name)))
			}
			if _, again := s.types[string(name)]; again {
				t.Fatalf("two TYPE lines for %s\n%s", name, body)
			}
			if !any && !metricName.MatchString(strings.ReplaceAll(string(name), ":", "_")) || len(name) == 0 {
				t.Fatalf("metric name %q\n%s", name, body)
			}
			s.types[string(name)] = typ
		case textparse.EntrySeries, textparse.EntryHistogram:
			var ls labels.Labels
			p.Labels(&ls)
			if dup, has := ls.HasDuplicateLabelNames(); has {
				t.Fatalf("label %q twice in a series\n%s", dup, body)
			}
			ls = ls.WithoutEmpty()
			ls.Range(func(l labels.Label) {
				if !any && !labelName.MatchString(l.Name) || strings.HasPrefix(l.Name, "__") && l.Name != "__name__" {
					t.Fatalf("label name %q\n%s", l.Name, body)
				}
			})
			id := ls.String()
			if e == textparse.EntryHistogram {
				_, _, h, _ := p.Histogram()
				if h == nil {
					t.Fatalf("%s is a float histogram", id)
				}
				if s.native[id] != nil {
					t.Fatalf("native histogram %s twice\n%s", id, body)
				}
				if err := h.Validate(); err != nil {
					t.Fatalf("native histogram %s: %v", id, err)
				}
				s.native[id] = h.Copy()
			} else {
				if _, again := s.values[id]; again {
					t.Fatalf("series %s twice\n%s", id, body)
				}
				_, _, s.values[id] = p.Series()
			}
			s.sets[id] = ls
			if at := p.StartTimestamp(); at != 0 {
				s.since[id] = at
			}
		}
	}
}

// group is the expected content of one series: the stats of one kind and origin with
// the same metric name and labels.
type group struct {
	kind   store.Kind
	base   string // metric name without a suffix that tells it from others
	labels string
	total  uint64    // of counters
	values []float64 // of gauges: one of them is shown
	counts uint64    // of histograms
	hists  []*store.Histogram
	stats  []string
	since  int64 // when the oldest was created, Unix milliseconds
}

func alphabet(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			b[i] = '_'
		}
	}
	return string(b)
}

func digitFirst(s string) bool { return s != "" && s[0] >= '0' && s[0] <= '9' }

// printable reports whether a name can be written to an exposition unescaped.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f })
}

// base returns the metric name of a family, or "" if it is not shown.
func base(n *naming.Rules, name string, network bool, k store.Kind, any bool) string {
	if network && any && printable(name) {
		if name = n.NetworkPrefix + name; name == "" {
			name = "_"
		}
		if k == store.KindCounter && n.NetworkTotal && !strings.HasSuffix(name, "_total") {
			name += "_total"
		}
		return name
	}
	if network {
		name = n.NetworkPrefix + alphabet(name)
		if name == "" || digitFirst(name) {
			name = "_" + name
		}
		if k == store.KindCounter && n.NetworkTotal && !strings.HasSuffix(name, "_total") {
			name += "_total"
		}
		return name
	}
	for _, ns := range n.Namespaces {
		if rest, ok := strings.CutPrefix(name, ns+"."); ok {
			if rest == "" || digitFirst(rest) {
				return ""
			}
			return alphabet(rest)
		}
	}
	return n.Product + "_" + alphabet(name)
}

// labelsOf returns the expected labels of the stat under c.
func labelsOf(c *store.Cursor, any bool) string {
	m := map[string]string{}
	if c.Kind() == store.KindText {
		m["text_value"] = valid(c.Text())
	}
	for _, t := range c.AppendTags(nil) {
		value := valid(t.Value)
		if value == "" {
			if !c.Network() {
				continue
			}
			value = "true"
		}
		name := t.Name
		if !any || !c.Network() || name == "" || !printable(name) {
			name = alphabet(name)
			if name == "" || digitFirst(name) {
				name = "_" + name
			}
		}
		if name == "le" || name == "quantile" || strings.HasPrefix(name, "__") {
			name = "exported_" + name
		}
		for _, taken := m[name]; taken; _, taken = m[name] {
			name = "exported_" + name
		}
		m[name] = value
	}
	if m["text_value"] == "" {
		delete(m, "text_value")
	}
	return labels.FromMap(m).String()
}

// valid returns s with invalid UTF-8 replaced by U+FFFD.
func valid(s string) string { return string([]rune(s)) }

// groups returns the expected series of a store; any permits all characters in names.
func groups(st *store.Store, any bool) []*group {
	byKey := map[string]*group{}
	v := st.View()
	defer v.Close()
	for _, set := range []store.NameSet{store.Scalars, store.Texts, store.Histograms} {
		c := v.ByName(set)
		for c.Next() {
			family := c.Name()
			if f := c.Family(); f != nil {
				family = f.String()
			}
			b := base(st.Naming(), family, c.Network(), c.Kind(), any)
			if b == "" {
				continue
			}
			ls := labelsOf(&c, any)
			key := fmt.Sprint(c.Kind(), c.Network(), b, ls)
			g := byKey[key]
			if g == nil {
				g = &group{kind: c.Kind(), base: b, labels: ls}
				byKey[key] = g
			}
			if at := c.Since().UnixMilli(); len(g.stats) == 0 || at < g.since {
				g.since = at
			}
			g.stats = append(g.stats, c.Name())
			switch c.Kind() {
			case store.KindCounter:
				g.total += c.Uint()
			case store.KindGauge:
				g.values = append(g.values, c.Float())
			case store.KindText:
				g.values = []float64{0}
			case store.KindHistogram:
				g.counts += c.Histogram().Snapshot().Cumulative.Count()
				g.hists = append(g.hists, c.Histogram())
			}
		}
	}
	list := make([]*group, 0, len(byKey))
	for _, g := range byKey {
		list = append(list, g)
	}
	sort.Slice(list, func(i, j int) bool { return fmt.Sprint(list[i]) < fmt.Sprint(list[j]) })
	return list
}

// suffixes lists the suffixes that distinguish metric names.
var suffixes = regexp.MustCompile(`^(_counter|_gauge|_text|_histogram)*$`)

// names reports whether a metric name is possible for g.
func (g *group) names(metric string) bool {
	rest, ok := strings.CutPrefix(metric, g.base)
	return ok && suffixes.MatchString(rest)
}

// check compares a scrape with the content of the store.
func check(t *testing.T, s *scrape, want []*group, body []byte, openMetrics, summary bool) {
	t.Helper()
	type series struct {
		metric, labels string
		value          float64
		since          int64
	}
	byKind := map[string][]series{}
	for id, ls := range s.sets {
		metric := ls.Get("__name__")
		rest := labels.NewBuilder(ls).Del("__name__").Labels()
		if s.native[id] != nil {
			continue
		}
		x := series{metric, rest.String(), s.values[id], s.since[id]}
		kind := s.kindOf(t, metric, openMetrics)
		if kind == "histogram" || kind == "summary" {
			var ok bool
			if x.metric, ok = strings.CutSuffix(metric, "_count"); !ok {
				continue
			}
			if string(s.types[x.metric]) != kind {
				continue // a quantile of a summary that is called so
			}
		}
		byKind[kind] = append(byKind[kind], x)
	}
	wantKinds := map[string]int{}
	for _, g := range want {
		kind := map[store.Kind]string{store.KindCounter: "counter", store.KindGauge: "gauge", store.KindText: "gauge", store.KindHistogram: "histogram"}[g.kind]
		if summary && kind == "histogram" {
			kind = "summary"
		}
		wantKinds[kind]++
		var named, found []series
		for _, x := range byKind[kind] {
			if x.labels != g.labels || !g.names(x.metric) {
				continue
			}
			named = append(named, x)
			ok := false
			switch g.kind {
			case store.KindCounter:
				ok = x.value == float64(g.total)
			case store.KindHistogram:
				ok = summary || x.value == float64(g.counts) || len(g.hists) > 1 // layouts may differ
			default:
				ok = slices.Contains(g.values, x.value)
			}
			if ok && !s.startsWith(g, x.metric, x.since, openMetrics, summary) {
				t.Fatalf("%s %q counts since %d, want %d\n%s", g.kind, g.stats, x.since, g.since, body)
			}
			if ok {
				found = append(found, x)
			}
		}
		if len(found) == 0 {
			t.Fatalf("no series for %s %q (metric %s, labels %s, total %d, values %v, count %d); of that name: %v\n%s",
				g.kind, g.stats, g.base, g.labels, g.total, g.values, g.counts, named, body)
		}
	}
	for kind, n := range wantKinds {
		if got := len(byKind[kind]); got != n {
			t.Fatalf("%d series of type %s, want %d\n%s", got, kind, n, body)
		}
	}
	for id, x := range s.values {
		if math.IsNaN(x) && !summary {
			t.Fatalf("series %s is not a number\n%s", id, body)
		}
	}
}

// startsWith reports whether a series of g can have a start time, in Unix milliseconds,
// which OpenMetrics leaves out if a metric has the name of its sample, and of counters
// without a suffix. Prometheus' parser truncates it.
func (s *scrape) startsWith(g *group, metric string, since int64, openMetrics, summary bool) bool {
	if s.since == nil || g.kind != store.KindCounter && g.kind != store.KindHistogram || summary && g.kind == store.KindHistogram {
		return since == 0
	}
	if openMetrics && since == 0 {
		family, _ := strings.CutSuffix(metric, "_total")
		_, taken := s.types[family+"_created"]
		return s.types[metric] == model.MetricTypeUnknown || taken || s.meets(family+"_created") ||
			s.meets(strings.TrimSuffix(alphabet(family), "_total")+"_created") // x.total is x_total with underscores
	}
	return since == g.since || openMetrics && since == g.since-1
}

// meets reports whether the scrape has a metric whose name is name with underscores.
func (s *scrape) meets(name string) bool {
	for other := range s.types {
		if alphabet(other) == alphabet(name) {
			return true
		}
	}
	return false
}

// checkSums compares the sum of all counters.
func checkSums(t *testing.T, s *scrape, want []*group, body []byte, openMetrics, _ bool) {
	t.Helper()
	var got, sum float64
	for _, g := range want {
		sum += float64(g.total)
	}
	for id, ls := range s.sets {
		if s.native[id] == nil && s.kindOf(t, ls.Get("__name__"), openMetrics) == "counter" {
			got += s.values[id]
		}
	}
	if got != sum {
		t.Fatalf("the counters add up to %v, want %v\n%s", got, sum, body)
	}
}

// kindOf returns the declared type of a sample's metric, "counter" where OpenMetrics
// has no suffix for it.
func (s *scrape) kindOf(t *testing.T, metric string, openMetrics bool) string {
	t.Helper()
	if typ, ok := s.types[metric]; ok {
		if openMetrics && typ == model.MetricTypeUnknown {
			return "counter"
		}
		if !(openMetrics && typ == model.MetricTypeCounter) {
			return string(typ)
		}
	}
	if base, ok := strings.CutSuffix(metric, "_total"); ok && s.types[base] == model.MetricTypeCounter {
		return "counter"
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		base, ok := strings.CutSuffix(metric, suffix)
		if typ := s.types[base]; ok && (typ == model.MetricTypeHistogram || typ == model.MetricTypeSummary) {
			return string(typ)
		}
	}
	t.Fatalf("sample %s belongs to no TYPE line", metric)
	return ""
}
