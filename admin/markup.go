package admin

import "github.com/statsd-admin/statsd-admin/internal/markup"

// h is short for constant markup.
type h = markup.HTML

// page is a web page under construction.
type page struct{ markup.Page }

// input appends a form field for a parameter. An empty id or form is omitted.
func (p *page) input(param *Param, id, form, value string, set bool) {
	attributes := func() {
		p.Put(h(" name='"), param.Name, h("'"))
		if id != "" {
			p.Put(h(" id='"), id, h("'"))
		}
		if form != "" {
			p.Put(h(" form='"), form, h("'"))
		}
	}
	switch param.Kind {
	case ParamFlag:
		p.Put(h("<input type='checkbox'"))
		attributes()
		if set {
			p.Put(h(" checked"))
		}
		p.Put(h(">"))
	case ParamChoice:
		p.Put(h("<select"))
		attributes()
		p.Put(h(">"))
		for _, choice := range param.Choices {
			p.Put(h("<option value='"), choice, h("'"))
			if choice == value && value != "" {
				p.Put(h(" selected"))
			}
			p.Put(h(">"), choice, h("</option>"))
		}
		p.Put(h("</select>"))
	case ParamLines:
		p.Put(h("<textarea rows='6'"))
		attributes()
		p.Put(h(">\n"), value, h("</textarea>"))
	default:
		p.Put(h("<input type='text'"))
		attributes()
		if value != "" {
			p.Put(h(" value='"), value, h("'"))
		}
		p.Put(h(">"))
	}
}
