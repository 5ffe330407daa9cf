package measured

import "testing"

func BenchmarkReported(b *testing.B) {
	for name, x := range map[string]float64{"a": 2, "b": 5} {
		b.Run("case="+name, func(b *testing.B) {
			for b.Loop() {
			}
			b.ReportMetric(x, "x/op")
		})
	}
}
