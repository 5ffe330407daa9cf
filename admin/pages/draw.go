package pages

// The drawings are SVG without style: lengths along the page are percentages, so that
// nothing is scaled, and colors come from classes.

// icon appends the symbol of a meaning.
func (v *view) icon(meaning string) {
	v.Put(h("<svg class='icon' aria-hidden='true'><use href='#i-"), meaning, h("'/></svg>"))
}

// symbols appends the icons that the page uses.
func (v *view) symbols() {
	v.Put(h("<svg class='vh' aria-hidden='true'>" +
		"<symbol id='i-ok' viewBox='0 0 16 16'><path fill-rule='evenodd' d='M8 1a7 7 0 100 14A7 7 0 008 1zM6.9 11.2L3.8 8.1l1.2-1.2 1.9 1.9 4.1-4.1 1.2 1.2z'/></symbol>" +
		"<symbol id='i-warn' viewBox='0 0 16 16'><path fill-rule='evenodd' d='M8 1.3L.9 14.2h14.2zM7.2 6h1.6v4.4H7.2zm0 5.4h1.6V13H7.2z'/></symbol>" +
		"<symbol id='i-bad' viewBox='0 0 16 16'><path fill-rule='evenodd' d='M5.1 1h5.8L15 5.1v5.8L10.9 15H5.1L1 10.9V5.1zM5.7 4.5L4.5 5.7 6.8 8l-2.3 2.3 1.2 1.2L8 9.2l2.3 2.3 1.2-1.2L9.2 8l2.3-2.3-1.2-1.2L8 6.8z'/></symbol>" +
		"<symbol id='i-info' viewBox='0 0 16 16'><path fill-rule='evenodd' d='M8 1a7 7 0 100 14A7 7 0 008 1zM7.2 3.8h1.6v1.7H7.2zm0 3h1.6v5.4H7.2z'/></symbol>" +
		"</svg>\n"))
}

// word appends a word with its icon and meaning.
func (v *view) word(meaning, text string) {
	v.Put(h("<span class='word "), meaning, h("'>"))
	v.icon(meaning)
	v.Put(text, h("</span>"))
}

// bar appends a bar that is full at most, as a share from 0 to 1.
func (v *view) bar(share float64, meaning string) {
	share = min(max(share, 0), 1)
	v.Put(h("<svg class='bar' aria-hidden='true'><rect class='bed' width='100%' height='4' rx='2'/>"))
	if share > 0 {
		v.Put(h("<rect class='f "), meaning, h("' width='"), max(share*100, 1), h("%' height='4' rx='2'/>"))
	}
	v.Put(h("</svg>"))
}

// nearLimit is the meaning of a use from 0 to 1.
func nearLimit(share float64) string {
	switch {
	case share >= 0.95:
		return "bad"
	case share >= 0.75:
		return "warn"
	}
	return ""
}

// cells appends the hosts of a cluster: up to 24 have a cell each, more are one bar of
// three parts. Full cells are healthy, half ones degraded, hollow ones unhealthy.
func (v *view) cells(healthy, degraded, unhealthy int) {
	total := healthy + degraded + unhealthy
	v.Put(h("<svg class='cells' viewBox='0 0 136 12' aria-hidden='true'>"))
	if total > 24 {
		x := 0.0
		part := func(n int, class string) {
			if n == 0 {
				return
			}
			width := max(136*float64(n)/float64(total), 2)
			v.Put(h("<rect class='"), class, h("' x='"), x, h("' width='"), min(width, 136-x), h("' height='12'/>"))
			x += width
		}
		part(unhealthy, "f bad")
		part(degraded, "f warn")
		part(healthy, "f ok")
		v.Put(h("</svg>"))
		return
	}
	pitch := 136.0 / float64(max(total, 8))
	width := pitch - min(2, pitch/4)
	for i := range total {
		x := float64(i) * pitch
		switch {
		case i < healthy:
			v.Put(h("<rect class='f ok' x='"), x, h("' width='"), width, h("' height='12' rx='2'/>"))
		case i < healthy+degraded:
			v.Put(h("<rect class='f warn' x='"), x, h("' y='6' width='"), width, h("' height='6' rx='2'/>"))
		default:
			v.Put(h("<rect class='hollow bad' x='"), x+.7, h("' y='.7' width='"), max(width-1.4, 1), h("' height='10.6' rx='2'/>"))
		}
	}
	v.Put(h("</svg>"))
}
