package admin

import "github.com/statsd-admin/statsd-admin/render"

// statsPage serves /stats?format=html: a form for the parameters above the lines of
// the plain text.
func (s *Server) statsPage(w *Response, r *Request, q *statsQuery) error {
	p := s.statsForm(r)
	p.Put(h("<pre>\n"))
	if _, err := w.Write(p.Bytes()); err != nil {
		return err
	}
	if err := render.HTMLLines(w, s.store, q.options); err != nil {
		return err
	}
	p.Reset()
	p.Put(h("</pre>\n"))
	p.end()
	_, err := w.Write(p.Bytes())
	return err
}

// badStatsPage answers a request with invalid parameters with the form and the error.
func (s *Server) badStatsPage(w *Response, r *Request, e *Error) error {
	p := s.statsForm(r)
	p.Put(h("<p class='bad' role='alert'>"), e.Msg, h("</p>\n"))
	p.end()
	w.SetStatus(e.Status)
	return w.all(typeHTML, p.Bytes())
}

// statsForm starts the page with the form and its current values.
func (s *Server) statsForm(r *Request) *page {
	p := s.newPage(capital(s.product)+" Stats", false, func(*page) {})
	p.Put(h("<form action='stats' method='get' class='options'>"))
	for _, param := range s.statsParams(true) {
		p.Put(h("\n<label title='"), param.Help, h("'>"), param.Name, h(" "))
		p.input(&param, "", "", r.query.Value(param.Name), r.query.Has(param.Name))
		p.Put(h("</label>"))
	}
	p.Put(h("\n<button type='submit'>stats</button>\n</form>\n"))
	return p
}
