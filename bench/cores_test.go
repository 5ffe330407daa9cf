package bench

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
)

// onAllCores distributes n calls over one goroutine per core. The time per call is
// the elapsed time divided by all calls, as in testing.B.RunParallel but without its
// check after every call.
func onAllCores(n int, f func(core, n int)) {
	cores := runtime.GOMAXPROCS(0)
	var wg sync.WaitGroup
	for core := range cores {
		wg.Go(func() { f(core, (n+core)/cores) })
	}
	wg.Wait()
}

// warmUp is the number of calls before a benchmark of a handle is timed, so that hot
// pages have their copies.
const warmUp = 1 << 16

// sizes runs f for 10k, 100k and 1M names. -short stops at 10k.
func sizes(b *testing.B, f func(b *testing.B, n int)) {
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		if n > 10_000 && testing.Short() {
			break
		}
		b.Run(fmt.Sprintf("names=%d", n), func(b *testing.B) { f(b, n) })
	}
}

// perName reports the time per name of a call that covers n names.
func perName(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/name")
}

// keepAlive keeps results from being optimized away.
func keepAlive(v ...any) { runtime.KeepAlive(v) }
