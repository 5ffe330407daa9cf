package histogram

import "math/bits"

// Merged counts are kept packed in one string of bits without pointers, so that
// a histogram costs about a byte per bin in use. For each page that has counts,
// in ascending order:
//
//	1          whether all bins of the page have counts
//	1          whether the page follows the one before without a gap
//	7          width
//	24         page number + pageBias, if there is a gap
//	sumWidth   sum of the page's counts
//	leastWidth least of the page's counts
//	64         a bit for each bin that has counts, if not all have
//	width      for each bin that has counts: by how much it exceeds the least
//
// Then follows, boundWidth bits each, the cumulative count at each bound.

const (
	widthBits  = 7
	numberBits = 24
	pageBias   = 1 << (numberBits - 1)

	headBits = 2 + widthBits
	allBins  = 1<<pageBins - 1
)

// packed holds counts in the format above. Its zero value is empty.
type packed struct {
	words       []uint64
	pages       uint32
	boundsStart uint32 // bit number
	sumWidth    uint8
	leastWidth  uint8
	boundWidth  uint8
}

// field returns the width bits of words from bit number at on.
func field(words []uint64, at uint, width uint) uint64 {
	if width == 0 {
		return 0
	}
	i, shift := at/64, at%64
	v := words[i] >> shift
	if shift+width > 64 {
		v |= words[i+1] << (64 - shift)
	}
	return v & (allBins >> (64 - width))
}

// bound returns the cumulative count at bound i.
func (p *packed) bound(i int) uint64 {
	return field(p.words, uint(p.boundsStart)+uint(i)*uint(p.boundWidth), uint(p.boundWidth))
}

// pageReader walks through packed counts. Before the first call of next it
// stands before the first page.
type pageReader struct {
	*packed
	read uint32 // pages

	// The current page.
	number int
	sum    uint64
	least  uint64
	used   uint64 // bins that have counts
	width  uint
	at     uint // bit number of the first count
}

func (p *packed) reader() pageReader { return pageReader{packed: p} }

// next goes to the next page. It reports false if there is none.
func (r *pageReader) next() bool {
	if r.read == r.pages {
		return false
	}
	r.read++
	at := r.at + uint(bits.OnesCount64(r.used))*r.width
	head := field(r.words, at, headBits)
	at += headBits
	r.width = uint(head >> 2)
	r.number++
	if head&2 == 0 {
		r.number = int(field(r.words, at, numberBits)) - pageBias
		at += numberBits
	}
	r.sum = field(r.words, at, uint(r.sumWidth))
	at += uint(r.sumWidth)
	r.least = field(r.words, at, uint(r.leastWidth))
	at += uint(r.leastWidth)
	r.used = allBins
	if head&1 == 0 {
		r.used = field(r.words, at, 64)
		at += 64
	}
	r.at = at
	return true
}

// addTo adds the current page to counts.
func (r *pageReader) addTo(counts *[pageBins]uint64) {
	at := r.at
	for u := r.used; u != 0; u &= u - 1 {
		counts[bits.TrailingZeros64(u)&(pageBins-1)] += r.least + field(r.words, at, r.width)
		at += r.width
	}
}

// packer builds packed counts. Its zero value is ready, reset makes it so again.
type packer struct {
	pages  []packerPage
	counts []uint64 // nonzero counts of all pages
	count  uint64   // their sum

	first, last int // bins that have counts, if count > 0
}

type packerPage struct {
	number    int
	used      uint64
	sum       uint64
	least     uint64
	width     uint
	following bool

	// packed is where the counts are, from bit number at on, if the page is
	// taken over as it is; nil if they are in packer.counts.
	packed []uint64
	at     uint
}

func (p *packer) reset() {
	*p = packer{pages: p.pages[:0], counts: p.counts[:0]}
}

// page appends page n. Pages must come in ascending order.
func (p *packer) page(n int, counts *[pageBins]uint64) {
	pg := packerPage{number: n, least: ^uint64(0)}
	var most uint64
	for i, c := range counts {
		if c != 0 {
			pg.used |= 1 << i
			pg.sum += c
			pg.least, most = min(pg.least, c), max(most, c)
			p.counts = append(p.counts, c)
		}
	}
	if pg.used == 0 {
		return
	}
	pg.width = uint(bits.Len64(most - pg.least))
	p.append(pg)
}

// takeOver appends the current page of r.
func (p *packer) takeOver(r *pageReader) {
	p.append(packerPage{
		number: r.number, used: r.used, sum: r.sum, least: r.least, width: r.width,
		packed: r.words, at: r.at,
	})
}

func (p *packer) append(pg packerPage) {
	if len(p.pages) == 0 {
		p.first = pg.number*pageBins + bits.TrailingZeros64(pg.used)
	} else {
		pg.following = p.pages[len(p.pages)-1].number == pg.number-1
	}
	p.last = pg.number*pageBins + 63 - bits.LeadingZeros64(pg.used)
	p.pages = append(p.pages, pg)
	p.count += pg.sum
}

// span is the least and the greatest sum that counted values can have by their
// bins.
type span struct{ low, high wide128 }

func (a span) plus(b span) span { return span{a.low.plus(b.low), a.high.plus(b.high)} }

// span returns the possible sums of the counts. No page may be taken over.
func (p *packer) span(g *geometry) (sum span) {
	counts := p.counts
	for i := range p.pages {
		for u := p.pages[i].used; u != 0; u &= u - 1 {
			low, high := g.signedSpan(p.pages[i].number*pageBins + bits.TrailingZeros64(u))
			sum = sum.plus(span{times(low, counts[0]), times(high, counts[0])})
			counts = counts[1:]
		}
	}
	return sum
}

// finish returns the pages and the counts at the bounds, packed.
func (p *packer) finish(bounds []uint64) packed {
	var sums, leasts, most uint64
	for i := range p.pages {
		sums |= p.pages[i].sum
		leasts |= p.pages[i].least
	}
	for _, b := range bounds {
		most |= b
	}
	k := packed{
		pages:      uint32(len(p.pages)),
		sumWidth:   uint8(bits.Len64(sums)),
		leastWidth: uint8(bits.Len64(leasts)),
		boundWidth: uint8(bits.Len64(most)),
	}
	size := uint(0)
	for i := range p.pages {
		size += p.pages[i].size(&k)
	}
	k.boundsStart = uint32(size)
	size += uint(len(bounds)) * uint(k.boundWidth)

	w := bitWriter{words: make([]uint64, (size+63)/64)}
	counts := p.counts
	for i := range p.pages {
		pg := &p.pages[i]
		n := bits.OnesCount64(pg.used)
		pg.write(&w, &k)
		if pg.packed != nil {
			w.copy(pg.packed, pg.at, uint(n)*pg.width)
			pg.packed = nil // scratch memory must not keep it
			continue
		}
		for _, c := range counts[:n] {
			w.put(c-pg.least, pg.width)
		}
		counts = counts[n:]
	}
	for _, b := range bounds {
		w.put(b, uint(k.boundWidth))
	}
	k.words = w.words
	return k
}

// size returns how many bits the page takes.
func (pg *packerPage) size(k *packed) uint {
	n := headBits + uint(k.sumWidth) + uint(k.leastWidth) + uint(bits.OnesCount64(pg.used))*pg.width
	if !pg.following {
		n += numberBits
	}
	if pg.used != allBins {
		n += 64
	}
	return n
}

// write writes the header of the page, which precedes its counts.
func (pg *packerPage) write(w *bitWriter, k *packed) {
	head := uint64(pg.width) << 2
	if pg.following {
		head |= 2
	}
	if pg.used == allBins {
		head |= 1
	}
	w.put(head, headBits)
	if !pg.following {
		w.put(uint64(pg.number+pageBias), numberBits)
	}
	w.put(pg.sum, uint(k.sumWidth))
	w.put(pg.least, uint(k.leastWidth))
	if pg.used != allBins {
		w.put(pg.used, 64)
	}
}

// bitWriter fills words, which must be 0 before.
type bitWriter struct {
	words []uint64
	at    uint
}

// put appends the low width bits of v; the others must be 0.
func (w *bitWriter) put(v uint64, width uint) {
	if width == 0 {
		return
	}
	i, shift := w.at/64, w.at%64
	w.words[i] |= v << shift
	if shift+width > 64 {
		w.words[i+1] = v >> (64 - shift)
	}
	w.at += width
}

// copy appends n bits of words from bit number at on.
func (w *bitWriter) copy(words []uint64, at, n uint) {
	for ; n > 64; n -= 64 {
		w.put(field(words, at, 64), 64)
		at += 64
	}
	w.put(field(words, at, n), n)
}
