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

// SubtractStats returns the values of a without the values of b, an earlier summary of
// the same histogram. Counts and sum are exact; minimum and maximum come from a
// where they can, and otherwise from the low end of their bin. b may be nil. It panics
// if the layouts differ.
func SubtractStats(a, b *Stats) *Stats {
	switch {
	case b == nil || b.count == 0:
		return a
	case a.layout != b.layout:
		panic("histogram: SubtractStats of different layouts")
	}
	var p packer
	ra, rb := a.packed.reader(), b.packed.reader()
	inB := rb.next()
	for ra.next() {
		var counts, less [pageBins]uint64
		ra.addTo(&counts)
		for inB && rb.number < ra.number {
			inB = rb.next()
		}
		if inB && rb.number == ra.number {
			rb.addTo(&less)
			for i, n := range less {
				counts[i] -= min(n, counts[i])
			}
		}
		p.page(ra.number, &counts)
	}
	if p.count == 0 {
		return a.layout.empty
	}
	bounds := a.AppendCumulative(nil)
	for i, n := range b.AppendCumulative(nil) {
		bounds[i] -= min(n, bounds[i])
	}
	s := &Stats{layout: a.layout, sum: a.sum.minus(b.sum)}
	s.packed, s.count = p.finish(bounds), p.count
	s.setEnds(p.first, p.last, [2]uint64{-endKey(a.least)}, [2]uint64{endKey(a.greatest)})
	return s
}
