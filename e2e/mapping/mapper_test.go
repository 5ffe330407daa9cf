package mapping

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/statsd_exporter/pkg/mapper"
	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/statsd/mapping"
)

// TestSameMatches compares names, labels and actions of random names under random
// files. The files leave out two cases that the programs treat differently: a glob
// that continues in an earlier one, and a glob that comes twice.
func TestSameMatches(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	matched := 0
	for set := range 200 {
		text := randomFile(r)
		ours, _, err := bootstrap.ParseMapping("m.yaml", []byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		theirs := &mapper.MetricMapper{Logger: slog.New(slog.DiscardHandler)}
		if err := theirs.InitFromYAMLString(text); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		for range 500 {
			name, kind := randomName(r), mapping.Kind(1+r.IntN(3))
			got, want := outcome(ours, name, kind), theirOutcome(theirs, name, kind)
			if got != want {
				t.Fatalf("file %d: %s %q\n got %s\nwant %s\n%s", set, kind, name, got, want, text)
			}
			if want != "none" {
				matched++
			}
		}
	}
	if matched < 10_000 {
		t.Errorf("only %d names matched", matched)
	}
}

func outcome(rules *mapping.Rules, name string, kind mapping.Kind) string {
	m, ok := rules.Find(name, kind)
	if !ok {
		return "none"
	}
	var labels []string
	for i, l := range m.Rule().Labels {
		labels = append(labels, fmt.Sprintf("%s=%q", l.Name, m.Label(i)))
	}
	return describe(m.Rule().Drop, m.Name(), m.Rule().Help, labels)
}

func theirOutcome(m *mapper.MetricMapper, name string, kind mapping.Kind) string {
	rule, values, ok := m.GetMapping(name, mapper.MetricType(kind.String()))
	if !ok {
		return "none"
	}
	var labels []string
	for label, value := range values {
		labels = append(labels, fmt.Sprintf("%s=%q", label, value))
	}
	return describe(rule.Action == mapper.ActionTypeDrop, rule.Name, rule.HelpText, labels)
}

func describe(drop bool, name, help string, labels []string) string {
	slices.Sort(labels)
	return fmt.Sprintf("drop %t, %s{%s}, rule %s", drop, name, strings.Join(labels, ","), help)
}

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

func randomName(r *rand.Rand) string {
	var segments []string
	for range 1 + r.IntN(4) {
		segments = append(segments, pick(r, "a", "b", "c", "d-e", "f_1", "7", ""))
	}
	return strings.Join(segments, ".")
}

// randomFile returns a mapping file. The help text of a rule is its number.
func randomFile(r *rand.Rand) string {
	var b strings.Builder
	fmt.Fprintf(&b, "defaults: {observer_type: %s}\nmappings:\n", pick(r, "summary", "histogram"))
	var globs []string
	for i := range 1 + r.IntN(12) {
		kind := pick(r, "", "", "counter", "gauge", "observer")
		match, regex := randomGlob(r), false
		if r.IntN(4) == 0 {
			match, regex = pick(r, `^a\.(.*)$`, `b`, `(\w+)\.(c|b)`, `^([^.]*)\.([^.]*)\.c`, `d-(e)`, `^(?P<x>a)`), true
		} else if slices.ContainsFunc(globs, func(g string) bool { return g == match || strings.HasPrefix(g, match+".") }) {
			continue
		} else {
			globs = append(globs, match)
		}
		fmt.Fprintf(&b, "- match: '%s'\n  name: '%s'\n  help: r%d\n", match, pick(r, "m", "m_${1}", "${2}_$1", "x$3"), i)
		if regex {
			b.WriteString("  match_type: regex\n")
		}
		if kind != "" {
			fmt.Fprintf(&b, "  match_metric_type: %s\n", kind)
		}
		if r.IntN(5) == 0 {
			b.WriteString("  action: drop\n")
		}
		fmt.Fprintf(&b, "  labels: {aa: '%s', bb: '%s'}\n", pick(r, "$1", "${1}x", "$0", "$1_x", "plain", ""), pick(r, "$2-$1", "${3}", "$9", "a$1"))
	}
	if len(globs) == 0 {
		b.WriteString("- {match: zz, name: zz, help: last}\n")
	}
	return b.String()
}

func randomGlob(r *rand.Rand) string {
	segments := []string{pick(r, "a", "b", "c", "d-e", "*", "*")}
	for range r.IntN(4) {
		segments = append(segments, pick(r, "a", "b", "c", "7", "f_1", "*", "*", "*"))
	}
	return strings.Join(segments, ".")
}
