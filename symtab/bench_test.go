package symtab

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// benchNames are 10,000 names of about 60 bytes that share most tokens.
func benchNames() []string {
	names := make([]string, 10_000)
	for i := range names {
		names[i] = fmt.Sprintf("cluster.backend_service_%03d.upstream_rq_by_zone.zone_%02d.rq_completed", i%500, i/500)
	}
	return names
}

func BenchmarkEncode(b *testing.B) {
	names := benchNames()
	b.Run("known=true", func(b *testing.B) {
		t := New(Options{})
		for _, n := range names {
			t.AppendEncode(nil, n)
		}
		var buf []byte
		i := 0
		b.ReportAllocs()
		for b.Loop() {
			buf = t.AppendEncode(buf[:0], names[i])
			t.Release(buf)
			if i++; i == len(names) {
				i = 0
			}
		}
	})
	b.Run("known=true/release=false", func(b *testing.B) {
		t := New(Options{})
		for _, n := range names {
			t.AppendEncode(nil, n)
		}
		var buf []byte
		i := 0
		b.ReportAllocs()
		for b.Loop() {
			buf = t.AppendEncode(buf[:0], names[i])
			if i++; i == len(names) {
				i = 0
			}
		}
	})
	b.Run("known=true/parallel", func(b *testing.B) {
		t := New(Options{})
		for _, n := range names {
			t.AppendEncode(nil, n)
		}
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			var buf []byte
			for i := rand.IntN(len(names)); pb.Next(); i++ {
				buf = t.AppendEncode(buf[:0], names[i%len(names)])
				t.Release(buf)
			}
		})
	})
	b.Run("known=false", func(b *testing.B) {
		t := New(Options{})
		var buf []byte
		name := []byte("cluster.service_00000000.stat")
		digits := name[len("cluster.service_"):][:8]
		i := 0
		b.ReportAllocs()
		for b.Loop() {
			i++
			for j, n := 7, i; j >= 0; j-- {
				digits[j] = byte('0' + n%10)
				n /= 10
			}
			buf = t.AppendEncodeBytes(buf[:0], name)
		}
	})
}

func BenchmarkText(b *testing.B) {
	names := benchNames()
	t := New(Options{})
	encs := make([][]byte, len(names))
	size := 0
	for i, n := range names {
		encs[i] = t.AppendEncode(nil, n)
		size += len(n)
	}
	buf := make([]byte, 0, 1024)
	each := func(name string, f func(i int)) {
		b.Run(name, func(b *testing.B) {
			i := 0
			b.ReportAllocs()
			b.SetBytes(int64(size / len(names)))
			for b.Loop() {
				f(i)
				if i++; i == len(names) {
					i = 0
				}
			}
		})
	}
	each("op=append", func(i int) { buf = t.AppendText(buf[:0], encs[i]) })
	each("op=equal", func(i int) { sinkBool = t.EqualText(encs[i], names[i]) })
	each("op=hash", func(i int) { sinkInt = int(t.Hash(names[i])) })
	each("op=memmove", func(i int) { buf = append(buf[:0], names[i]...) })
}

var (
	sinkBool bool
	sinkInt  int
)

func BenchmarkHash(b *testing.B) {
	t := New(Options{Seed: 1})
	for _, n := range []int{2, 5, 10, 20, 40, 60} {
		s := strings.Repeat("n", n)
		b.Run(fmt.Sprintf("bytes=%d/impl=keyed", n), func(b *testing.B) {
			for b.Loop() {
				sinkInt = int(t.Hash(s))
			}
		})
		b.Run(fmt.Sprintf("bytes=%d/impl=digest", n), func(b *testing.B) {
			for b.Loop() {
				var d xxhash.Digest
				d.ResetWithSeed(7)
				d.WriteString(s)
				sinkInt = int(d.Sum64())
			}
		})
		b.Run(fmt.Sprintf("bytes=%d/impl=unseeded", n), func(b *testing.B) {
			for b.Loop() {
				sinkInt = int(xxhash.Sum64String(s))
			}
		})
	}
}

func BenchmarkCountLookup(b *testing.B) {
	names := benchNames()
	for _, on := range []bool{false, true} {
		t := New(Options{})
		if on {
			t.EnableRecent()
		}
		b.Run(fmt.Sprintf("on=%t", on), func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				t.CountLookup(names[i%50])
				i++
			}
		})
		b.Run(fmt.Sprintf("on=%t/parallel", on), func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					t.CountLookup(names[i%50])
				}
			})
		})
	}
	b.Run("impl=atomic", func(b *testing.B) {
		var n atomic.Uint64
		for b.Loop() {
			n.Add(1)
		}
	})
}

// BenchmarkMemory reports what a token of 12 bytes costs, its bytes included.
func BenchmarkMemory(b *testing.B) {
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("tokens=%d", n), func(b *testing.B) {
			for b.Loop() {
				before := heap()
				t := New(Options{})
				var buf []byte
				for i := range n {
					buf = t.AppendEncode(buf[:0], fmt.Sprintf("token_%06d", i))
				}
				after := heap()
				b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(n), "B/token")
				b.ReportMetric(float64(after.HeapObjects-before.HeapObjects)/float64(n), "objects/token")
				runtime.KeepAlive(t)
			}
		})
	}
}

func heap() runtime.MemStats {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m
}
