// Package markup builds HTML pages without templates. Constants are markup,
// everything else is text:
//
//	var p markup.Page
//	p.Put(markup.HTML("<td>"), name, markup.HTML("</td>"))
//
// A test checks that only literals are converted to HTML, so that external input can
// never become markup.
package markup

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// HTML is markup. Convert only literals to it.
type HTML string

// Page is a page under construction. The zero value is empty.
type Page struct{ b []byte }

// Put appends values of type HTML unchanged and the text of all others escaped, which
// makes it safe between tags and in quoted attributes. Floating-point numbers are
// coordinates of drawings and get at most one decimal.
func (p *Page) Put(parts ...any) {
	for _, part := range parts {
		switch part := part.(type) {
		case HTML:
			p.b = append(p.b, part...)
		case string:
			p.b = append(p.b, html.EscapeString(strings.ReplaceAll(part, "\x00", "\uFFFD"))...)
		case int:
			p.b = strconv.AppendInt(p.b, int64(part), 10)
		case uint64:
			p.b = strconv.AppendUint(p.b, part, 10)
		case float64:
			p.b = strconv.AppendFloat(p.b, math.Round(part*10)/10+0, 'f', -1, 64)
		default:
			p.b = append(p.b, html.EscapeString(fmt.Sprint(part))...)
		}
	}
}

// Join appends another page.
func (p *Page) Join(other *Page) { p.b = append(p.b, other.b...) }

// Bytes returns the page so far. It is valid until the next call of a method.
func (p *Page) Bytes() []byte { return p.b }

// Len returns the number of bytes so far.
func (p *Page) Len() int { return len(p.b) }

// Reset empties the page and keeps its memory.
func (p *Page) Reset() { p.b = p.b[:0] }
