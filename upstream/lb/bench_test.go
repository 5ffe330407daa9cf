package lb

import (
	"fmt"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/upstreamtest"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

// benchCase is one balancer whose picks are measured.
type benchCase struct {
	name string
	c    Config
	ctx  *Context
	host func(i int) *host.Host
}

func benchCases() []benchCase {
	plain := func(i int) *host.Host { return upstreamtest.Host(i) }
	weighted := func(i int) *host.Host { return upstreamtest.Host(i, weight(uint32(i%7+1))) }
	busy := func(i int) *host.Host { // all but one have too much
		h := upstreamtest.Host(i)
		for range min(i%5*100, 100) {
			h.Stats.RqActive.Inc()
		}
		return h
	}
	hash := &Context{Hash: 0x9E3779B97F4A7C15, HasHash: true}
	return []benchCase{
		{"round_robin", Config{}, nil, plain},
		{"round_robin_weighted", Config{}, nil, weighted},
		{"least_request", Config{Policy: config.LeastRequestPolicy}, nil, plain},
		{"least_request_weighted", Config{Policy: config.LeastRequestPolicy}, nil, weighted},
		{"random", Config{Policy: config.RandomPolicy}, nil, plain},
		{"ring_hash", Config{Policy: config.RingHashPolicy}, hash, plain},
		{"maglev", Config{Policy: config.MaglevPolicy}, hash, plain},
		{"round_robin_slow_start", Config{SlowStart: SlowStart{Window: time.Hour, MinWeight: 0.1, Aggression: func() float64 { return 2 }}}, nil, plain},
		{"maglev_bounded", Config{Policy: config.MaglevPolicy, HashBalanceFactor: 150, ActiveRequests: func() uint64 { return 10 }}, hash, busy},
		{"subset", Config{
			MetadataNamespace: "proxy.lb",
			Subset:            &config.Subset{Fallback: config.FallbackNone, Selectors: []config.SubsetSelector{{Keys: []string{"v"}}}},
		}, &Context{Criteria: NewCriteria(map[string]any{"v": "0"})}, func(i int) *host.Host { return upstreamtest.Host(i, values("v", fmt.Sprint(i%10))) }},
	}
}

func (bc *benchCase) build(n int) Balancer {
	hosts := make([]*host.Host, n)
	for i := range hosts {
		hosts[i] = bc.host(i)
	}
	b := New(bc.c)
	b.Update(priorities(hosts), nil)
	return b
}

func BenchmarkPick(b *testing.B) {
	for _, bc := range benchCases() {
		for _, n := range []int{1, 10, 1000} {
			lb := bc.build(n)
			name := fmt.Sprintf("policy=%s/hosts=%d", bc.name, n)
			b.Run(name+"/from=one", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					lb.Pick(bc.ctx)
				}
			})
			b.Run(name+"/from=all", func(b *testing.B) {
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						lb.Pick(bc.ctx)
					}
				})
			})
		}
	}
}

func BenchmarkUpdate(b *testing.B) {
	for _, bc := range benchCases() {
		for _, n := range []int{10, 1000} {
			hosts := make([]*host.Host, n)
			for i := range hosts {
				hosts[i] = bc.host(i)
			}
			lb := New(bc.c)
			b.Run(fmt.Sprintf("policy=%s/hosts=%d", bc.name, n), func(b *testing.B) {
				flip := status.FailedActiveHC
				for b.Loop() {
					if hosts[0].Flags() != 0 {
						hosts[0].ClearFlags(flip)
					} else {
						hosts[0].SetFlags(flip)
					}
					lb.Update(priorities(hosts), nil)
				}
			})
		}
	}
}
