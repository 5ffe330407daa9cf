package mapping

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/statsd_exporter/pkg/mapper"
	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/statsd/mapping"
)

// scenario is a row of a table in the tests of statsd_exporter: a mapping file, whether
// it is wrong, and names with their results.
type scenario struct {
	name, config string
	bad          bool
	names        []named
}

type named struct {
	name, metric string // metric is empty if the row does not say
	kind         mapper.MetricType
	labels       map[string]string
	absent       bool
}

// scenarios reads the tables from the sources of statsd_exporter's tests.
func scenarios(t *testing.T) (all []scenario) {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/prometheus/statsd_exporter").Output()
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(strings.TrimSpace(string(dir)), "pkg/mapper/mapper_test.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		row, ok := n.(*ast.CompositeLit)
		if !ok || fields(row)["testName"] == nil {
			return true
		}
		f := fields(row)
		s := scenario{name: text(t, f["testName"]), config: text(t, f["config"]), bad: isTrue(f["configBad"])}
		if list, ok := f["mappings"].(*ast.CompositeLit); ok {
			for _, e := range list.Elts {
				f := fields(e.(*ast.CompositeLit))
				m := named{name: text(t, f["statsdMetric"]), metric: text(t, f["name"]), kind: mapper.MetricTypeCounter, labels: map[string]string{}, absent: isTrue(f["notPresent"])}
				if id, ok := f["metricType"].(*ast.Ident); ok {
					m.kind = mapper.MetricType(strings.ToLower(strings.TrimPrefix(id.Name, "MetricType")))
				}
				if labels, ok := f["labels"].(*ast.CompositeLit); ok {
					for _, l := range labels.Elts {
						pair := l.(*ast.KeyValueExpr)
						m.labels[text(t, pair.Key)] = text(t, pair.Value)
					}
				}
				s.names = append(s.names, m)
			}
		}
		all = append(all, s)
		return false
	})
	return all
}

// fields returns the fields of a literal by name.
func fields(lit *ast.CompositeLit) map[string]ast.Expr {
	all := map[string]ast.Expr{}
	for _, e := range lit.Elts {
		if pair, ok := e.(*ast.KeyValueExpr); ok {
			if key, ok := pair.Key.(*ast.Ident); ok {
				all[key.Name] = pair.Value
			}
		}
	}
	return all
}

// text returns a string literal, "" for a field that is not there.
func text(t *testing.T, e ast.Expr) string {
	t.Helper()
	if e == nil {
		return ""
	}
	lit, ok := e.(*ast.BasicLit)
	if !ok {
		t.Fatalf("%T is not a literal", e)
	}
	s, err := strconv.Unquote(lit.Value)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func isTrue(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "true"
}

// TestTablesOfPeer runs the tables in the tests of statsd_exporter: the same files are
// wrong, and the same names become the same metrics, with the same options.
func TestTablesOfPeer(t *testing.T) {
	kinds := map[mapper.MetricType]mapping.Kind{mapper.MetricTypeCounter: mapping.Counter, mapper.MetricTypeGauge: mapping.Gauge, mapper.MetricTypeObserver: mapping.Observer}
	files, names := 0, 0
	for _, s := range scenarios(t) {
		t.Run(s.name, func(t *testing.T) {
			files++
			rules, _, err := bootstrap.ParseMapping("m.yaml", []byte(s.config))
			if (err != nil) != s.bad {
				t.Fatalf("%v, want an error: %t\n%s", err, s.bad, s.config)
			}
			if err != nil {
				return
			}
			theirs := &mapper.MetricMapper{Logger: slog.New(slog.DiscardHandler)}
			if err := theirs.InitFromYAMLString(s.config); err != nil {
				t.Fatal(err)
			}
			for _, n := range s.names {
				names++
				m, ok := rules.Find(n.name, kinds[n.kind])
				if n.absent && ok {
					t.Errorf("%s: rule %d applies", n.name, m.Index())
				}
				if got, want := outcome(rules, n.name, kinds[n.kind]), theirOutcome(theirs, n.name, kinds[n.kind]); got != want {
					t.Errorf("%s:\n got %s\nwant %s", n.name, got, want)
				}
				if !ok {
					if len(n.labels) > 0 {
						t.Errorf("%s: no rule, want %s%v", n.name, n.metric, n.labels)
					}
					continue
				}
				labels := map[string]string{}
				for i, l := range m.Rule().Labels {
					labels[l.Name] = m.Label(i)
				}
				if n.metric != "" && m.Name() != n.metric || fmt.Sprint(labels) != fmt.Sprint(n.labels) {
					t.Errorf("%s: got %s%v, want %s%v", n.name, m.Name(), labels, n.metric, n.labels)
				}
				rule, _, _ := theirs.GetMapping(n.name, n.kind)
				if got, want := ourOptions(rules, m.Rule()), theirOptions(theirs, rule); got != want {
					t.Errorf("%s:\n got %s\nwant %s", n.name, got, want)
				}
			}
		})
	}
	if files < 60 || names < 70 {
		t.Errorf("only %d files and %d names", files, names)
	}
}

func ourOptions(rules *mapping.Rules, r *mapping.Rule) string {
	ttl, scale := r.TTL, r.Scale
	if ttl == 0 {
		ttl = rules.Config().TTL
	}
	if scale == 0 && !r.Zero {
		scale = 1
	}
	o := r.Observe
	if o == nil {
		o = rules.Config().Observe
	}
	text := fmt.Sprintf("ttl %v, scale %v, ", ttl, scale)
	if len(o.Quantiles) > 0 {
		return text + fmt.Sprintf("quantiles %v over %v in %d", slices.Sorted(slices.Values(o.Quantiles)), cmp.Or(o.MaxAge, prometheus.DefMaxAge), cmp.Or(o.Steps, prometheus.DefAgeBuckets))
	}
	return text + fmt.Sprintf("buckets %v, native %v up to %d", o.Buckets, o.NativeFactor, o.NativeBuckets)
}

func theirOptions(m *mapper.MetricMapper, r *mapper.MetricMapping) string {
	scale := 1.0
	if r.Scale.Set {
		scale = r.Scale.Val
	}
	text := fmt.Sprintf("ttl %v, scale %v, ", r.Ttl, scale)
	if r.ObserverType == mapper.ObserverTypeHistogram {
		h, d := r.HistogramOptions, m.Defaults.HistogramOptions
		return text + fmt.Sprintf("buckets %v, native %v up to %d", h.Buckets,
			cmp.Or(h.NativeHistogramBucketFactor, d.NativeHistogramBucketFactor), cmp.Or(h.NativeHistogramMaxBuckets, d.NativeHistogramMaxBuckets))
	}
	s := r.SummaryOptions
	if s == nil {
		s = &m.Defaults.SummaryOptions
	}
	var quantiles []float64
	for _, q := range s.Quantiles {
		quantiles = append(quantiles, q.Quantile)
	}
	slices.Sort(quantiles)
	return text + fmt.Sprintf("quantiles %v over %v in %d", quantiles, cmp.Or(s.MaxAge, prometheus.DefMaxAge), cmp.Or(s.AgeBuckets, prometheus.DefAgeBuckets))
}
