package admin

import "github.com/statsd-admin/statsd-admin/render"

// statsPage serves /stats?format=html: a form for the parameters above the lines of
// the plain text.
func (s *Server) statsPage(w *Response, r *Request, q *statsQuery) error {
	p := s.statsForm(r)
	p.put(markup("<pre>\n"))
	if _, err := w.Write(p.b); err != nil {
		return err
	}
	if err := render.HTMLLines(w, s.store, q.options); err != nil {
		return err
	}
	p.b = p.b[:0]
	p.put(markup("</pre>\n"))
	p.end()
	_, err := w.Write(p.b)
	return err
}

// badStatsPage answers a request with invalid parameters with the form and the error.
func (s *Server) badStatsPage(w *Response, r *Request, e *Error) error {
	p := s.statsForm(r)
	p.put(markup("<p class='bad' role='alert'>"), e.Msg, markup("</p>\n"))
	p.end()
	w.SetStatus(e.Status)
	w.SetType(typeHTML)
	_, err := w.Write(p.b)
	return err
}

// statsForm starts the page with the form and its current values.
func (s *Server) statsForm(r *Request) *page {
	p := s.newPage(capital(s.product)+" Stats", false)
	p.put(markup("<form action='stats' method='get' class='options'>"))
	for _, param := range s.statsParams(true) {
		p.put(markup("\n<label title='"), param.Help, markup("'>"), param.Name, markup(" "))
		p.input(&param, "", "", r.query.Value(param.Name), r.query.Has(param.Name))
		p.put(markup("</label>"))
	}
	p.put(markup("\n<button type='submit'>stats</button>\n</form>\n"))
	return p
}
