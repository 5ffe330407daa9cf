package histogram

import "math/bits"

// Merged counts are kept packed, without pointers, in one slice of words:
//
//	headerWords for each page that has counts, in ascending order:
//	    page number (25 bits, signed), width (7 bits), offset (32 bits)
//	    a bit for each bin of the page that has counts
//	    the sum of all counts on earlier pages
//	for each page, from bit number offset on: count-1 of each bin that has
//	    counts, width bits each
//	the cumulative counts at the bounds, boundWidth bits each

const (
	headerWords = 3

	offsetBits = 32
	widthBits  = 7
	pageShift  = offsetBits + widthBits
)

// packer builds packed counts. Its zero value is ready, reset makes it so again.
type packer struct {
	head  []uint64
	body  []uint64
	bits  uint64 // in use of body
	count uint64

	first, last int // bins that have counts, if count > 0
}

func (p *packer) reset() {
	*p = packer{head: p.head[:0], body: p.body[:0]}
}

func (p *packer) put(v uint64, width uint) {
	if width == 0 {
		return
	}
	at := uint(p.bits % 64)
	if at == 0 {
		p.body = append(p.body, v)
	} else {
		p.body[len(p.body)-1] |= v << at
		if at+width > 64 {
			p.body = append(p.body, v>>(64-at))
		}
	}
	p.bits += uint64(width)
}

// page appends a page. Pages must come in ascending order.
func (p *packer) page(n int, counts *[pageBins]uint64) {
	var used, most, sum uint64
	for i, c := range counts {
		if c != 0 {
			used |= 1 << i
			most |= c - 1
			sum += c
		}
	}
	if used == 0 {
		return
	}
	if p.count == 0 {
		p.first = n*pageBins + bits.TrailingZeros64(used)
	}
	p.last = n*pageBins + 63 - bits.LeadingZeros64(used)
	width := uint(bits.Len64(most))
	p.head = append(p.head, uint64(n)<<pageShift|uint64(width)<<offsetBits|p.bits, used, p.count)
	if width > 0 {
		for u := used; u != 0; u &= u - 1 {
			p.put(counts[bits.TrailingZeros64(u)]-1, width)
		}
	}
	p.count += sum
}

// finish appends the counts at the bounds and returns what was packed.
func (p *packer) finish(bounds []uint64) (packed, uint64) {
	var most uint64
	for _, b := range bounds {
		most |= b
	}
	width, at := uint(bits.Len64(most)), p.bits
	for _, b := range bounds {
		p.put(b, width)
	}
	data := make([]uint64, len(p.head)+len(p.body))
	copy(data[copy(data, p.head):], p.body)
	return packed{
		data:        data,
		pages:       len(p.head) / headerWords,
		boundsStart: uint32(at),
		boundsWidth: uint8(width),
	}, p.count
}

// packed is the finished product of a packer. Its zero value has no counts.
type packed struct {
	data        []uint64
	pages       int
	boundsStart uint32
	boundsWidth uint8
}

// packedPage is a page of packed counts.
type packedPage struct {
	number int
	used   uint64
	below  uint64 // sum of the counts on earlier pages
	width  uint
	offset uint64
}

func (p *packed) page(i int) packedPage {
	h := p.data[i*headerWords:][:headerWords]
	return packedPage{
		number: int(int64(h[0]) >> pageShift),
		used:   h[1],
		below:  h[2],
		width:  uint(h[0] >> offsetBits & (1<<widthBits - 1)),
		offset: h[0] & (1<<offsetBits - 1),
	}
}

func (p *packed) body() []uint64 { return p.data[p.pages*headerWords:] }

// field returns the width bits of body from bit number at on.
func field(body []uint64, at uint64, width uint) uint64 {
	if width == 0 {
		return 0
	}
	i, shift := at/64, uint(at%64)
	v := body[i] >> shift
	if shift+width > 64 {
		v |= body[i+1] << (64 - shift)
	}
	return v & (1<<width - 1)
}

// unpack sets counts to those of page i.
func (p *packed) unpack(i int, counts *[pageBins]uint64) (number int) {
	pg, body := p.page(i), p.body()
	*counts = [pageBins]uint64{}
	at := pg.offset
	for u := pg.used; u != 0; u &= u - 1 {
		counts[bits.TrailingZeros64(u)&(pageBins-1)] = field(body, at, pg.width) + 1
		at += uint64(pg.width)
	}
	return pg.number
}

// bound returns the cumulative count at bound i.
func (p *packed) bound(i int) uint64 {
	return field(p.body(), uint64(p.boundsStart)+uint64(i)*uint64(p.boundsWidth), uint(p.boundsWidth))
}
