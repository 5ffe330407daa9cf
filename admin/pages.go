package admin

import (
	"html/template"
	"strings"

	"github.com/statsd-admin/statsd-admin/admin/ui"
)

// pages holds the templates of the pages and the assets they link.
type pages struct {
	title  string
	assets *ui.Assets
	home   *template.Template
	stats  *template.Template
}

func newPages(product string) (*pages, error) {
	assets, err := ui.Load()
	if err != nil {
		return nil, err
	}
	home, err := assets.Template("home.html")
	if err != nil {
		return nil, err
	}
	stats, err := assets.Template("stats.html")
	if err != nil {
		return nil, err
	}
	return &pages{capital(product), assets, home, stats}, nil
}

// homeRow is an endpoint as the page shows it.
type homeRow struct {
	Link    string // relative, so that the page works below a path of a proxy
	Form    string
	Help    string
	Mutates bool
	Word    string // to be typed before it is sent; "": none
	Params  []Param
}

// showHome answers /. The page works without scripts: what changes something is
// a button in a form that posts, never a link.
// What the caller may not do, for its role or in the server's mode, is not shown.
func (s *Server) showHome(w *Response, r *Request) error {
	w.SetType(typeHTML)
	var rows []homeRow
	for _, e := range s.Endpoints() {
		if e.Path == "/" || r.principal.Role < e.needs() || e.Mutates && s.cfg.Mode == ModeReadOnly {
			continue
		}
		link := e.Path[1:]
		row := homeRow{Link: link, Form: "form-" + strings.ReplaceAll(link, "/", "-"), Help: e.Help, Mutates: e.Mutates, Params: e.Params}
		if e.Destructive {
			row.Word = link
		}
		rows = append(rows, row)
	}
	node := ""
	if s.src.Info != nil {
		if n := s.src.Info().Node; n != nil {
			node = n.ID
		}
	}
	return s.pages.home.Execute(w, struct {
		Title, Node string
		Rows        []homeRow
	}{s.pages.title, node, rows})
}
