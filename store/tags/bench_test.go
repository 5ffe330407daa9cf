package tags

import (
	"fmt"
	"testing"
)

// benchNames are names of typical shapes, 1000 of each.
func benchNames() map[string][]string {
	shapes := map[string]string{
		"cluster":  "cluster.service_%d.upstream_cx_total",
		"code":     "cluster.service_%d.upstream_rq_404",
		"http":     "http.ingress_%d.downstream_rq_2xx",
		"listener": "listener.0.0.0.0_%d.downstream_cx_total",
		"other":    "checkout.orders_%d.latency",
	}
	names := map[string][]string{}
	for shape, format := range shapes {
		for i := range 1000 {
			names[shape] = append(names[shape], fmt.Sprintf(format, i))
		}
	}
	return names
}

func BenchmarkExtract(b *testing.B) {
	e := mustNew(b, Config{UseDefaults: true})
	all := benchNames()
	for _, shape := range []string{"cluster", "code", "http", "listener", "other"} {
		names := all[shape]
		b.Run("names="+shape+"/into=false", func(b *testing.B) {
			b.ReportAllocs()
			var dst []Tag
			i := 0
			for b.Loop() {
				_, dst = e.Extract(names[i], dst[:0])
				if i++; i == len(names) {
					i = 0
				}
			}
		})
		b.Run("names="+shape+"/into=true", func(b *testing.B) {
			b.ReportAllocs()
			var dst []Tag
			var buf []byte
			i := 0
			for b.Loop() {
				buf, dst = e.ExtractInto(names[i], buf[:0], dst[:0])
				if i++; i == len(names) {
					i = 0
				}
			}
		})
	}
}

// BenchmarkConfigured adds configured expressions that do not match, to show
// what the search for their literals costs.
func BenchmarkConfigured(b *testing.B) {
	var specs []Spec
	for _, tier := range []string{"tier", "zone", "shard", "canary"} {
		specs = append(specs, Spec{Name: tier, Regex: `\.` + tier + `_((\w+)\.)`})
	}
	e := mustNew(b, Config{UseDefaults: true, Tags: specs})
	b.ReportAllocs()
	var dst []Tag
	var buf []byte
	for b.Loop() {
		buf, dst = e.ExtractInto("cluster.service_17.upstream_cx_total", buf[:0], dst[:0])
	}
}
