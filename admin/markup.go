package admin

import (
	"html"
	"strings"
)

// markup is HTML. A test checks that only constants are converted to it, so that
// external input can never become markup.
type markup string

// page builds a web page.
type page struct{ b []byte }

// put appends markup unchanged and escapes strings. Use strings only for text between
// tags and in quoted attributes.
func (p *page) put(parts ...any) {
	for _, part := range parts {
		switch part := part.(type) {
		case markup:
			p.b = append(p.b, part...)
		case string:
			p.b = append(p.b, html.EscapeString(strings.ReplaceAll(part, "\x00", "\uFFFD"))...)
		}
	}
}

// input appends a form field for a parameter. An empty id or form is omitted.
func (p *page) input(param *Param, id, form, value string, set bool) {
	attributes := func() {
		p.put(markup(" name='"), param.Name, markup("'"))
		if id != "" {
			p.put(markup(" id='"), id, markup("'"))
		}
		if form != "" {
			p.put(markup(" form='"), form, markup("'"))
		}
	}
	switch param.Kind {
	case ParamFlag:
		p.put(markup("<input type='checkbox'"))
		attributes()
		if set {
			p.put(markup(" checked"))
		}
		p.put(markup(">"))
	case ParamChoice:
		p.put(markup("<select"))
		attributes()
		p.put(markup(">"))
		for _, choice := range param.Choices {
			p.put(markup("<option value='"), choice, markup("'"))
			if choice == value && value != "" {
				p.put(markup(" selected"))
			}
			p.put(markup(">"), choice, markup("</option>"))
		}
		p.put(markup("</select>"))
	case ParamLines:
		p.put(markup("<textarea rows='6'"))
		attributes()
		p.put(markup(">\n"), value, markup("</textarea>"))
	default:
		p.put(markup("<input type='text'"))
		attributes()
		if value != "" {
			p.put(markup(" value='"), value, markup("'"))
		}
		p.put(markup(">"))
	}
}
