package line

import "testing"

func BenchmarkLine(b *testing.B) {
	p := New(Config{})
	for _, bb := range []struct{ name, in string }{
		{"line=plain", "app.requests.total:1|c"},
		{"line=timer", "app.request.duration:12.534|ms|@0.1"},
		{"line=tags", "app.requests.total:1|c|#region:eu-west-1,service:checkout,status:200"},
	} {
		in := []byte(bb.in)
		var l Line
		b.Run(bb.name+"/stage=split+numbers", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Split(&l, in)
				p.Numbers(&l)
			}
		})
		b.Run(bb.name+"/stage=all", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Parse(&l, in)
			}
		})
	}
}
