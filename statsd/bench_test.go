package statsd

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/statsd/mapping"
)

// benchLines are packets of 25 lines of 1000 names in all.
func benchPackets(format string) [][]byte {
	var out [][]byte
	for p := range 40 {
		var b strings.Builder
		for i := range 25 {
			if i > 0 {
				b.WriteByte('\n')
			}
			fmt.Fprintf(&b, format, p*25+i)
		}
		out = append(out, []byte(b.String()))
	}
	return out
}

// BenchmarkKnownLine is parsing and applying one line whose name is known.
func BenchmarkKnownLine(b *testing.B) {
	for _, bb := range []struct{ name, format string }{
		{"counter", "app.requests.total%d:1|c"},
		{"counter-sampled", "app.requests.total%d:1|c|@0.1"},
		{"counter-3-tags", "app.requests.total%d:1|c|#region:eu-west-1,service:checkout,status:200"},
		{"timer", "app.request.duration%d:12.5|ms"},
		{"timer-3-tags", "app.request.duration%d:12.5|ms|#region:eu-west-1,service:checkout,status:200"},
		{"gauge", "app.queue.length%d:42|g"},
		{"set", "app.users%d:someone|s"},
	} {
		b.Run("line="+bb.name, func(b *testing.B) {
			r := newRig(b, Config{})
			w := r.streamWorkers[0]
			packets := benchPackets(bb.format)
			run := func(p []byte) {
				w.enter()
				defer w.leave(r.l)
				w.packet(r.l, p, false, source{})
			}
			for _, p := range packets {
				run(p)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; i < b.N; i += 25 {
				run(packets[i/25%len(packets)])
			}
		})
	}
}

// BenchmarkLineWithRules is a line under a number of globs, of which the last one maps
// it: the first line of a series, and known lines in packets of 25.
func BenchmarkLineWithRules(b *testing.B) {
	const last = 9999 // in the names of all, which are equally long
	for _, n := range []int{0, 10, 10_000} {
		var rules mapping.Config
		for i := last + 1 - n; i <= last; i++ {
			rules.Rules = append(rules.Rules, mapping.Rule{Match: fmt.Sprintf("team%d.*.requests%d.*", i%100, i), Name: "requests_total", Labels: labels("app", "$1", "code", "$2")})
		}
		r := newRig(b, Config{Rules: rulesOf(b, rules), Limits: Limits{NewPerSecond: -1, Series: -1, FirstSegment: -1, SeriesPerName: -1}})
		w := r.streamWorkers[0]
		i := 0
		send := func(buf []byte, app int) []byte {
			buf = fmt.Appendf(buf[:0], "team%d.shop%07d.requests%d.200:1|c", last%100, app, last)
			w.enter()
			w.packet(r.l, buf, false, source{})
			w.leave(r.l)
			return buf
		}
		b.Run(fmt.Sprintf("rules=%d/new", n), func(b *testing.B) {
			b.ReportAllocs()
			var buf []byte
			for b.Loop() {
				buf = send(buf, i)
				i++
			}
		})
		b.Run(fmt.Sprintf("rules=%d/known", n), func(b *testing.B) {
			b.ReportAllocs()
			var packet []byte
			for i := range 25 {
				packet = append(append(packet, send(nil, 1<<24+i)...), '\n')
			}
			b.ResetTimer()
			for i := 0; i < b.N; i += 25 {
				w.enter()
				w.packet(r.l, packet, false, source{})
				w.leave(r.l)
			}
		})
	}
}

// BenchmarkReorderedLine is a line of a known series with its tags in a random
// order, of which most are not cached.
func BenchmarkReorderedLine(b *testing.B) {
	r := newRig(b, Config{})
	w := r.streamWorkers[0]
	tags := []string{"a:1", "b:2", "c:3", "d:4", "e:5", "f:6", "g:7", "h:8"}
	rnd := rand.New(rand.NewPCG(1, 2))
	var lines [][]byte
	for range 10_000 {
		rnd.Shuffle(len(tags), func(i, j int) { tags[i], tags[j] = tags[j], tags[i] })
		lines = append(lines, []byte("app.requests:1|c|#"+strings.Join(tags, ",")))
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		w.enter()
		w.packet(r.l, lines[i%len(lines)], false, source{})
		w.leave(r.l)
	}
}

// BenchmarkNewLine is a line whose series is made by it.
func BenchmarkNewLine(b *testing.B) {
	for _, bb := range []struct {
		name string
		line func(dst []byte, i int) []byte
	}{
		{"counter", func(dst []byte, i int) []byte {
			return fmt.Appendf(dst, "service.backend.requests.total.endpoint%07d:1|c", i)
		}},
		{"counter-3-tags", func(dst []byte, i int) []byte {
			return fmt.Appendf(dst, "app.requests.total:1|c|#region:eu-west-1,service:s%d,status:%d", i/7, i%7)
		}},
	} {
		b.Run("line="+bb.name, func(b *testing.B) {
			r := newRig(b, Config{Limits: Limits{NewPerSecond: -1, Series: -1, FirstSegment: -1, SeriesPerName: -1}})
			w := r.streamWorkers[0]
			b.ReportAllocs()
			var buf []byte
			for i := range b.N {
				buf = bb.line(buf[:0], i)
				w.enter()
				w.packet(r.l, buf, false, source{})
				w.leave(r.l)
			}
		})
	}
}

func BenchmarkRejectedLine(b *testing.B) {
	r := newRig(b, Config{})
	w := r.streamWorkers[0]
	in := []byte("app.requests.total:x|c")
	b.ReportAllocs()
	for b.Loop() {
		w.enter()
		w.packet(r.l, in, false, source{})
		w.leave(r.l)
	}
}

// BenchmarkConflictingLine is a line whose name belongs to another kind: the first of an
// interval, and the further ones.
func BenchmarkConflictingLine(b *testing.B) {
	for _, first := range []bool{true, false} {
		b.Run(fmt.Sprintf("first=%t", first), func(b *testing.B) {
			r := newRig(b, Config{RejectConflicts: true, ExporterMetrics: true, Parse: ParseConfig{Exporter: true}})
			r.send("app.requests.total:1|c")
			w := r.streamWorkers[0]
			in := []byte("app.requests.total:12|ms")
			b.ReportAllocs()
			for b.Loop() {
				if first {
					r.registry.era.Add(1)
				}
				w.enter()
				w.packet(r.l, in, false, source{})
				w.leave(r.l)
			}
		})
	}
}
