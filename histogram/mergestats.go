package histogram

// MergeStats returns the exact sum of two summaries of histograms of one
// layout. It panics if the layouts differ. Either may be nil.
func MergeStats(a, b *Stats) *Stats {
	switch {
	case a == nil || a.count == 0 && b != nil:
		return b
	case b == nil || b.count == 0:
		return a
	case a.layout != b.layout:
		panic("histogram: MergeStats of different layouts")
	}
	var p packer
	ra, rb := a.packed.reader(), b.packed.reader()
	for inA, inB := ra.next(), rb.next(); inA || inB; {
		n := ra.number
		if !inA || inB && rb.number < n {
			n = rb.number
		}
		var counts [pageBins]uint64
		if inA && ra.number == n {
			ra.addTo(&counts)
			inA = ra.next()
		}
		if inB && rb.number == n {
			rb.addTo(&counts)
			inB = rb.next()
		}
		p.page(n, &counts)
	}
	bounds := a.AppendCumulative(nil)
	for i, n := range b.AppendCumulative(nil) {
		bounds[i] += n
	}
	s := &Stats{
		layout:   a.layout,
		sum:      a.sum.plus(b.sum),
		least:    min(a.least, b.least),
		greatest: max(a.greatest, b.greatest),
	}
	s.packed, s.count = p.finish(bounds), p.count
	return s
}
