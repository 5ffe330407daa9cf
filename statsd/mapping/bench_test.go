package mapping

import (
	"fmt"
	"testing"
)

// BenchmarkFind is the first sight of a name by a number of glob rules: the cost
// of a name without the series cache.
func BenchmarkFind(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		var rules []Rule
		for i := range n / 2 {
			rules = append(rules,
				Rule{Match: fmt.Sprintf("team%d.*.service%d.*.requests.*", i%100, i), Name: "requests_total", Labels: []Label{{"app", "$1"}, {"host", "$2"}, {"code", "$3"}}},
				Rule{Match: fmt.Sprintf("team%d.*.*.*.errors%d.*", i%100, i), Name: "errors_total", Labels: []Label{{"app", "$1"}, {"code", "${4}"}}},
			)
		}
		r := compileRules(b, Config{Rules: rules})
		names := map[string]string{
			"first": "team0.shop.service0.web1.requests.200", "last": fmt.Sprintf("team%d.shop.s.web1.errors%d.500", (n/2-1)%100, n/2-1),
			"none": "team1.shop.service1.web1.other.x",
		}
		for _, which := range []string{"first", "last", "none"} {
			b.Run(fmt.Sprintf("rules=%d/%s", n, which), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					m, ok := r.Find(names[which], Counter)
					if ok != (which != "none") {
						b.Fatal(ok)
					}
					if ok {
						_ = m.Name()
						for i := range m.Rule().Labels {
							_ = m.Label(i)
						}
					}
				}
			})
		}
	}
}
