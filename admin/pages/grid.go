package pages

import (
	"fmt"
	"strings"

	"github.com/statsd-admin/statsd-admin/internal/numfmt"
	"github.com/statsd-admin/statsd-admin/store"
)

// export collects the rows of the table that the client wants as tab-separated
// values.
type export struct {
	id    string // of the table; "" for the page itself
	found bool
	rows  []byte
}

// column is a column of a table.
type column struct {
	head  string
	short string // shown instead of head, which explains it
	title string // explains a short head
	class string // "num" aligns numbers
	sort  string // value of the parameter sort; "" for columns that cannot be sorted by

	unlisted bool // not exported
	exported bool // not shown
	hidden   bool // neither shown nor exported
}

// grid is a table. Its cells are written in order; each has an exact value, which is
// exported, and may show something else.
type grid struct {
	v       *view
	columns []column
	at      int
	export  bool
	bare    bool // its cells do not say their head on narrow screens
}

// order is the order of a table.
type order struct {
	by   string
	desc bool
}

// sorted reads the order from the parameters. by lists the columns that can be sorted
// by, the default first. A minus in front means descending at first.
func (v *view) sorted(by ...string) order {
	got := v.query.Value("sort")
	for i, name := range by {
		name, desc := strings.CutPrefix(name, "-")
		if got == name || i == 0 && got == "" {
			switch v.query.Value("dir") {
			case "asc":
				desc = false
			case "desc":
				desc = true
			}
			return order{name, desc}
		}
	}
	name, desc := strings.CutPrefix(by[0], "-")
	return order{name, desc}
}

// grid starts a table. class can be "cards", which makes a card of each row on narrow
// screens.
func (v *view) grid(id, caption, class string, o order, columns ...column) *grid {
	g := &grid{v: v, columns: columns, export: v.tsv.id == id}
	v.Put(h("<div class='scroll' tabindex='0' role='region' aria-label='"), caption, h("'><table id='"), id, h("' class='"), class,
		h("'><caption class='vh'>"), caption, h("</caption><thead><tr>"))
	for i, c := range columns {
		if g.export {
			v.tsv.found = true
			g.value(i, c.head)
		}
		if c.short != "" {
			c.head, c.title = c.short, c.head
			columns[i] = c
		}
		if c.hidden || c.exported {
			continue
		}
		v.Put(h("<th scope='col'"))
		if c.class != "" {
			v.Put(h(" class='"), c.class, h("'"))
		}
		if c.title != "" {
			v.Put(h(" title='"), c.title, h("'"))
		}
		heads := columns[i : i+1]
		if i+1 < len(columns) && columns[i+1].exported && columns[i+1].sort != "" {
			heads = columns[i : i+2] // the cells show its value below
		}
		v.sortHeads(heads, o)
	}
	v.Put(h("</tr></thead>\n<tbody>"))
	return g
}

// sortHeads appends the heads of a column of cells, which sort by their values or reverse
// the order.
func (v *view) sortHeads(columns []column, o order) {
	arrow := h("\u00A0↑")
	for _, c := range columns {
		if c.sort == "" || c.sort != o.by {
			continue
		}
		state := h("ascending")
		if o.desc {
			state, arrow = "descending", "\u00A0↓"
		}
		v.Put(h(" aria-sort='"), state, h("'"))
	}
	v.Put(h(">"))
	for i, c := range columns {
		if i > 0 {
			v.Put(" · ")
		}
		if c.sort == "" {
			v.Put(c.head)
			continue
		}
		dir := "asc"
		if c.sort == o.by && !o.desc || c.sort != o.by && strings.HasPrefix(c.class, "num") {
			dir = "desc"
		}
		v.Put(h("<a href='"), v.here("sort", c.sort, "dir", dir, "offset", ""), h("' data-k='sort-"), c.sort, h("'>"), c.head)
		if c.sort == o.by {
			v.Put(h("<span aria-hidden='true'>"), arrow, h("</span>"))
		}
		v.Put(h("</a>"))
	}
	v.Put(h("</th>"))
}

// value exports a value.
func (g *grid) value(i int, value string) {
	if !g.export || g.columns[i].unlisted || g.columns[i].hidden {
		return
	}
	if i > 0 {
		g.v.tsv.rows = append(g.v.tsv.rows, '\t')
	}
	g.v.tsv.rows = append(g.v.tsv.rows, oneLine.Replace(value)...)
}

// oneLine keeps a value in its cell.
var oneLine = strings.NewReplacer("\t", " ", "\n", " ", "\r", " ")

func (g *grid) row(class string) {
	g.endRow()
	g.v.Put(h("<tr"))
	if class != "" {
		g.v.Put(h(" class='"), class, h("'"))
	}
	g.v.Put(h(">"))
}

func (g *grid) endRow() {
	if g.export {
		g.v.tsv.rows = append(g.v.tsv.rows, '\n')
	}
	if g.at > 0 {
		g.v.Put(h("</tr>\n"))
	}
	g.at = 0
}

// head appends the cell that names the row.
func (g *grid) head(value string, show func()) {
	g.value(g.at, value)
	g.v.Put(h("<th scope='row' class='"), g.columns[g.at].class, h("'>"))
	g.at++
	if show == nil {
		g.v.Put(value)
	} else {
		show()
	}
	g.v.Put(h("</th>"))
}

// cell appends a cell with an exact value. If show is nil, the value is shown.
func (g *grid) cell(value string, show func()) {
	g.marked(value, "", nil, show)
}

// marked is cell with a second class and with attributes.
func (g *grid) marked(value, class string, attributes, show func()) {
	g.value(g.at, value)
	c := g.columns[g.at]
	g.at++
	if c.hidden || c.exported {
		return
	}
	g.v.Put(h("<td"))
	if !g.bare {
		g.v.Put(h(" data-l='"), c.head, h("'"))
	}
	if class = strings.TrimSpace(c.class + " " + class); class != "" {
		g.v.Put(h(" class='"), class, h("'"))
	}
	if strings.HasPrefix(c.class, "num") {
		g.v.Put(h(" data-value='"), value, h("'"))
	}
	if attributes != nil {
		attributes()
	}
	g.v.Put(h(">"))
	if show == nil {
		g.v.Put(value)
	} else {
		show()
	}
	g.v.Put(h("</td>"))
}

// num appends a cell with a number. Zero is quiet.
func (g *grid) num(value string) { g.shown(value, numfmt.Grouped(value)) }

// shown appends a cell with a number and how it is shown.
func (g *grid) shown(value, text string) {
	g.cell(value, func() {
		switch {
		case text == none:
			g.v.Put(h("<i>"), text, h("</i>"))
		case value == "0":
			g.v.Put(h("<span class='quiet'>"), text, h("</span>"))
		default:
			g.v.Put(text)
		}
	})
}

// figure appends a cell with the value of a counter or gauge of the server.
func (g *grid) figure(list *store.View, name string) {
	if x, ok := number(list, name); ok {
		g.num(fmt.Sprintf("%.0f", x))
	} else {
		g.shown("", none)
	}
}

// wide appends a row with one cell for all columns. It is not exported.
func (g *grid) wide(class string, show func()) {
	if g.at > 0 {
		g.v.Put(h("</tr>\n"))
	}
	seen := 0
	for _, c := range g.columns {
		if !c.hidden && !c.exported {
			seen++
		}
	}
	g.v.Put(h("<tr class='"), class, h("'><td colspan='"), seen, h("'>"))
	show()
	g.v.Put(h("</td></tr>\n"))
	g.at = 0
}

func (g *grid) end() {
	g.endRow()
	g.v.Put(h("</tbody></table></div>\n"))
}

// narrower is the advice below a filtered list that does not fit on a page.
const narrower = ": a narrower filter finds fewer"

// pager appends links to the pages of a list, and if the page has not all of it, says
// how much that is.
func (v *view) pager(offset, shown, total, limit int, advice string) {
	v.Put(h("<div class='pad row line pager'><span"))
	switch {
	case total == 0:
		v.Put(h(">"), "0 of 0")
	case shown == total:
		v.Put(h(">"), count(1), " to ", count(shown), " of ", count(total))
	default:
		v.Put(h(" id='truncated'>"), "Showing ", count(offset+1), " to ", count(offset+shown), " of ", count(total), advice)
	}
	v.Put(h("</span><span class='row end'>"))
	step := func(label, rel string, to int, active bool) {
		if !active {
			v.Put(h("<span class='btn off' aria-disabled='true'>"), label, h("</span>"))
			return
		}
		value := ""
		if to > 0 {
			value = fmt.Sprint(to)
		}
		v.Put(h("<a class='btn' rel='"), rel, h("' href='"), v.here("offset", value), h("'>"), label, h("</a>"))
	}
	step("Previous", "prev", max(0, offset-limit), offset > 0)
	step("Next", "next", offset+limit, offset+shown < total)
	v.Put(h("</span></div>\n"))
}
