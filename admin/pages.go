package admin

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// The headings of the home page, in order.
const (
	groupState    = "State and life cycle"
	groupStats    = "Stats"
	groupStatsD   = "StatsD"
	groupClusters = "Clusters and listeners"
	groupConfig   = "Configuration"
	groupLogging  = "Logging"
	groupDebug    = "Diagnostics"
	groupOther    = "Other"
)

func groups() []string {
	return []string{groupState, groupStats, groupStatsD, groupClusters, groupConfig, groupLogging, groupDebug}
}

// newPage starts a page whose title is also its heading.
func (s *Server) newPage(title string, script bool) *page {
	p := new(page)
	p.put(markup("<!DOCTYPE html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"+
		"<meta name='viewport' content='width=device-width, initial-scale=1'>\n<title>"), title, markup("</title>\n"+
		"<link rel='stylesheet' href='"), s.assetLink("admin.css"), markup("'>\n"+
		"<link rel='icon' href='"), s.assetLink("icon.svg"), markup("' type='image/svg+xml'>\n"))
	if script {
		p.put(markup("<script type='module' src='"), s.assetLink("home.js"), markup("'></script>\n"))
	}
	p.put(markup("</head>\n<body>\n<main>\n<h1>"), title, markup("</h1>\n"))
	return p
}

// assetLink returns the path of an asset, relative so that pages work under a prefix.
func (s *Server) assetLink(name string) string { return strings.TrimPrefix(s.assets.Path(name), "/") }

func (p *page) end() { p.put(markup("</main>\n</body>\n</html>\n")) }

// showHome serves the home page, which works without scripts: every mutation is a
// button in a form that posts, never a link. It omits endpoints that the client's
// role or the server's mode does not permit.
func (s *Server) showHome(w *Response, r *Request) error {
	byGroup := make(map[string][]Endpoint)
	count := 0
	for _, e := range s.Endpoints() {
		if e.Path == "/" || r.principal.Role < e.needs() || e.Mutates && s.cfg.Mode == ModeReadOnly {
			continue
		}
		count++
		if e.Group == "" {
			e.Group = groupOther
		}
		byGroup[e.Group] = append(byGroup[e.Group], e)
	}
	order := groups()
	for _, e := range s.Endpoints() { // groups of the program, in the order of their paths
		if e.Group != "" && !slices.Contains(order, e.Group) {
			order = append(order, e.Group)
		}
	}
	order = append(order, groupOther)
	p := s.newPage(capital(s.product)+" Admin", true)
	node := s.homeFacts(p)
	p.put(markup("<p class='groups'><span class='quiet'>"), fmt.Sprint(count), markup(" commands:</span>"))
	for i, group := range order {
		if len(byGroup[group]) > 0 {
			p.put(markup(" <a href='#group-"), fmt.Sprint(i), markup("'>"), group, markup("</a>"))
		}
	}
	p.put(markup("</p>\n<table>\n<thead><tr><th scope='col'>Command</th><th scope='col'>Description</th></tr></thead>\n"))
	for i, group := range order {
		if len(byGroup[group]) == 0 {
			continue
		}
		p.put(markup("<tbody class='group' id='group-"), fmt.Sprint(i), markup("'><tr><th colspan='2' scope='rowgroup'>"), group, markup("</th></tr></tbody>\n"))
		for _, e := range byGroup[group] {
			p.command(&e, node)
		}
	}
	p.put(markup("</table>\n<p class='quiet'>Blue opens a page. A command with a border changes the server and is sent as POST. " +
		"Red stops traffic or the server.</p>\n"))
	p.end()
	w.SetType(typeHTML)
	_, err := w.Write(p.b)
	return err
}

// homeFacts appends the strip of facts about the server and returns the ID of its
// node.
func (s *Server) homeFacts(p *page) (node string) {
	p.put(markup("<dl class='facts'>"))
	fact := func(name, value string) {
		if value != "" {
			p.put(markup("<div><dt>"), name, markup("</dt><dd>"), value, markup("</dd></div>"))
		}
	}
	fact("State", s.state())
	if s.src.Info != nil {
		info := s.src.Info()
		fact("Version", info.Version)
		fact("Up", info.UptimeCurrentEpoch.Truncate(time.Second).String())
		if n := info.Node; n != nil {
			node = n.ID
			fact("Node", n.ID)
			fact("Cluster", n.Cluster)
		}
	}
	p.put(markup("</dl>\n"))
	return node
}

// command appends the rows of an endpoint.
func (p *page) command(e *Endpoint, node string) {
	link := e.Path[1:]
	form := "form-" + strings.ReplaceAll(link, "/", "-")
	p.put(markup("<tbody>\n<tr class='command'>\n<td>"))
	if !e.Mutates && len(e.Params) == 0 {
		p.put(markup("<a href='"), link, markup("'>"), link, markup("</a>"))
	} else {
		p.put(markup("<form action='"), link, markup("' method='"))
		class := markup("'><button type='submit'>")
		if e.Mutates {
			p.put(markup("post' id='"), form)
			class = markup("'><button type='submit' class='mutation'>")
		} else {
			p.put(markup("get' id='"), form)
		}
		if e.Destructive {
			p.put(markup("' data-word='"), link, markup("' data-node='"), node)
			class = markup("'><button type='submit' class='mutation destructive'>")
		}
		p.put(class, link, markup("</button></form>"))
	}
	p.put(markup("</td>\n<td>"))
	if len(e.Params) > 0 || e.pair {
		p.put(markup("<label class='opts'><input type='checkbox'> options</label>"))
	}
	p.put(e.Help)
	if e.Destructive {
		p.put(markup(" <span class='bad'>cannot be undone</span>"))
	}
	p.put(markup("</td>\n</tr>\n"))
	field := func(id, label, help string, input func()) {
		p.put(markup("<tr class='param'>\n<td><label for='"), id, markup("'>"), label, markup("</label></td>\n<td>"))
		input()
		p.put(markup(" <span class='quiet'>"), help, markup("</span></td>\n</tr>\n"))
	}
	for i := range e.Params {
		param := &e.Params[i]
		field(form+"-"+param.Name, param.Name, param.Help, func() { p.input(param, form+"-"+param.Name, form, "", false) })
	}
	if e.pair {
		for _, name := range [...]string{"key", "value"} {
			field(form+"-"+name, name, "", func() {
				p.put(markup("<input type='text' id='"), form+"-"+name, markup("' form='"), form, markup("' data-pair='"), name, markup("'>"))
			})
		}
	}
	p.put(markup("</tbody>\n"))
}

// favicon serves the path that browsers request on their own.
func (s *Server) favicon(w *Response, _ *Request) error {
	icon := s.assets.Find(s.assets.Path("icon.svg"))
	if icon == nil {
		return &Error{Status: http.StatusNotFound}
	}
	w.SetType(icon.ContentType)
	w.SetHeader("cache-control", "public, max-age=86400")
	_, err := w.Write(icon.Raw)
	return err
}
