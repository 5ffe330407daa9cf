package admin

import (
	"github.com/statsd-admin/statsd-admin/render"
)

// statsPage answers /stats?format=html: a form for the parameters above the
// lines of the plain text.
func (s *Server) statsPage(w *Response, r *Request, q *statsQuery) error {
	if err := s.pages.stats.ExecuteTemplate(w, "head", s.statsForm(r)); err != nil {
		return err
	}
	if err := render.HTMLLines(w, s.store, q.options); err != nil {
		return err
	}
	return s.pages.stats.ExecuteTemplate(w, "foot", nil)
}

// statsForm is what the form of the page shows.
type statsForm struct {
	Title  string
	Fields []statsField
}

// statsField is a parameter with its present value.
type statsField struct {
	Param
	Value string
	Set   bool
}

func (s *Server) statsForm(r *Request) statsForm {
	form := statsForm{Title: s.pages.title}
	for _, p := range s.statsParams(true) {
		form.Fields = append(form.Fields, statsField{p, r.query.Value(p.Name), r.query.Has(p.Name)})
	}
	return form
}
