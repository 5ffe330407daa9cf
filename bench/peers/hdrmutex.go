package peers

import (
	"sync"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

type lockedHdr struct {
	mu sync.Mutex
	h  *hdr.Histogram
}

func (l *lockedHdr) Record(v uint64) {
	l.mu.Lock()
	_ = l.h.RecordValue(int64(v)) // all values of the workload are in range
	l.mu.Unlock()
}

// hdrMutex is hdrhistogram-go with two significant digits behind a mutex.
func hdrMutex() library {
	return library{
		name: "hdr+mutex",
		record: func(vals []uint64) loop {
			h := &lockedHdr{h: hdr.New(1, 3_600_000, 2)}
			return func(_, n int) {
				for i := range n {
					h.Record(vals[i%len(vals)])
				}
			}
		},
		quantiles: func(vals []uint64) func() []float64 {
			h := &lockedHdr{h: hdr.New(1, 3_600_000, 2)}
			for _, v := range vals {
				h.Record(v)
			}
			percentiles := nineQuantiles()
			for i := range percentiles {
				percentiles[i] *= 100
			}
			out := make([]float64, len(percentiles))
			return func() []float64 {
				h.mu.Lock()
				defer h.mu.Unlock()
				at := h.h.ValueAtPercentiles(percentiles)
				for i, p := range percentiles {
					out[i] = float64(at[p])
				}
				return out
			}
		},
	}
}
