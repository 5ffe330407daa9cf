package admin

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/statsd-admin/statsd-admin/internal/numfmt"
	"github.com/statsd-admin/statsd-admin/internal/product"
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

// newPage starts a page whose title is also its heading. links appends the content beside
// the heading.
func (s *Server) newPage(title string, script bool, links func(p *page)) *page {
	p := new(page)
	p.Put(h("<!DOCTYPE html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"+
		"<meta name='viewport' content='width=device-width, initial-scale=1'>\n<title>"), title, h("</title>\n"+
		"<link rel='stylesheet' href='"), s.assetLink("admin.css"), h("'>\n<link rel='stylesheet' href='"), s.assetLink("home.css"), h("'>\n"+
		"<link rel='icon' href='"), s.assetLink("icon.svg"), h("' type='image/svg+xml'>\n<script src='"), s.assetLink("theme.js"), h("'></script>\n"))
	if script {
		p.Put(h("<script type='module' src='"), s.assetLink("admin.js"), h("'></script>\n"))
	}
	p.Put(h("</head>\n<body>\n<main class='home'>\n<div class='head'><h1>"), title, h("</h1><span class='row end'>"))
	links(p)
	p.Put(h("</span></div>\n"))
	return p
}

// assetLink returns the path of an asset, relative so that pages work under a prefix.
func (s *Server) assetLink(name string) string { return strings.TrimPrefix(s.assets.Path(name), "/") }

func (p *page) end() { p.Put(h("</main>\n</body>\n</html>\n")) }

// showHome serves the home page, which works without scripts: every mutation is a
// button in a form that posts, never a link. It omits endpoints that the client's
// role or the server's mode does not permit.
func (s *Server) showHome(w *Response, r *Request) error {
	byGroup := make(map[string][]Endpoint)
	count := 0
	for _, e := range s.Endpoints() {
		if e.Path == "/" || !s.permits(r, &e) {
			continue
		}
		count++
		e.Group = cmp.Or(e.Group, groupOther)
		byGroup[e.Group] = append(byGroup[e.Group], e)
	}
	order := []string{groupState, groupStats, groupStatsD, groupClusters, groupConfig, groupLogging, groupDebug}
	for _, e := range s.Endpoints() { // groups of the program, in the order of their paths
		if e.Group != "" && !slices.Contains(order, e.Group) {
			order = append(order, e.Group)
		}
	}
	order = append(order, groupOther)
	p := s.newPage(capital(s.product)+" Admin", true, func(p *page) {
		if s.Permits(r, livePages) {
			p.Put(h("<a class='btn' href='help'>Help as text</a><a class='btn primary' href='ui/'>Open live pages</a>"))
		}
	})
	node := s.homeFacts(p)
	p.Put(h("<p class='groups'><span class='quiet'>"), fmt.Sprint(count), h(" commands:</span>"))
	for i, group := range order {
		if len(byGroup[group]) > 0 {
			p.Put(h(" <a href='#group-"), fmt.Sprint(i), h("'>"), group, h("</a>"))
		}
	}
	p.Put(h("</p>\n<table aria-label='Commands'>\n<thead><tr><th scope='col'>Command</th><th scope='col'>Description</th></tr></thead>\n"))
	for i, group := range order {
		if len(byGroup[group]) == 0 {
			continue
		}
		p.Put(h("<tbody class='group' id='group-"), fmt.Sprint(i), h("'><tr><th colspan='2' scope='rowgroup'>"), group, h("</th></tr></tbody>\n"))
		for _, e := range byGroup[group] {
			p.command(&e, node)
		}
	}
	p.Put(h("</table>\n<p class='quiet'>Blue opens a page. A command with a border changes the server and is sent as POST. " +
		"Red stops traffic or the server.</p>\n"))
	p.end()
	return w.all(typeHTML, p.Bytes())
}

// homeFacts appends the strip of facts about the server and returns the ID of its
// node.
func (s *Server) homeFacts(p *page) (node string) {
	p.Put(h("<dl class='panel pad strip'>"))
	fact := func(name, value string) {
		if value != "" {
			p.Put(h("<div><dt>"), name, h("</dt><dd>"), value, h("</dd></div>"))
		}
	}
	if state := s.State(); state == "LIVE" {
		p.Put(h("<div><dt>State</dt><dd class='ok'>LIVE</dd></div>"))
	} else {
		fact("State", state)
	}
	if s.src.Info != nil {
		info := s.src.Info()
		fact("Version", product.Version(info.Version))
		fact("Up", numfmt.Span(info.UptimeCurrentEpoch))
		if n := info.Node; n != nil {
			node = n.ID
			fact("Node", n.ID)
			fact("Cluster", n.Cluster)
		}
	}
	p.Put(h("</dl>\n"))
	return node
}

// command appends the rows of an endpoint.
func (p *page) command(e *Endpoint, node string) {
	link := e.Path[1:]
	form := "form-" + strings.ReplaceAll(link, "/", "-")
	p.Put(h("<tbody>\n<tr class='command'>\n<td>"))
	if !e.Mutates && len(e.Params) == 0 {
		p.Put(h("<a href='"), link, h("'>"), link, h("</a>"))
	} else {
		p.Put(h("<form action='"), link, h("' method='"))
		class := h("'><button type='submit'>")
		if e.Mutates {
			p.Put(h("post' data-effect='"), e.Help, h("' id='"), form)
			class = h("'><button type='submit' class='mutation'>")
		} else {
			p.Put(h("get' id='"), form)
		}
		if e.Destructive {
			p.Put(h("' data-word='"), link, h("' data-node='"), node)
			class = h("'><button type='submit' class='mutation destructive'>")
		}
		p.Put(class, link, h("</button></form>"))
	}
	p.Put(h("</td>\n<td>"))
	names := make([]string, 0, len(e.Params)+2)
	for i := range e.Params {
		names = append(names, e.Params[i].Name)
	}
	if e.pair {
		names = append(names, "key", "value")
	}
	if len(names) > 0 {
		noun := " options"
		if len(names) == 1 {
			noun = " option"
		}
		p.Put(h("<label class='opts'><input type='checkbox'> "), fmt.Sprint(len(names)), noun, h("<span class='quiet'>: <code>"), strings.Join(names, ", "), h("</code></span></label>"))
	}
	p.Put(e.Help)
	if e.Destructive {
		p.Put(h(" <span class='bad'>cannot be undone</span>"))
	}
	p.Put(h("</td>\n</tr>\n"))
	field := func(id, label, help string, input func()) {
		p.Put(h("<tr class='param'>\n<td><label for='"), id, h("'>"), label, h("</label></td>\n<td>"))
		input()
		p.Put(h(" <span class='quiet'>"), help, h("</span></td>\n</tr>\n"))
	}
	for i := range e.Params {
		param := &e.Params[i]
		field(form+"-"+param.Name, param.Name, param.Help, func() { p.input(param, form+"-"+param.Name, form, "", false) })
	}
	if e.pair {
		for _, name := range [...]string{"key", "value"} {
			field(form+"-"+name, name, "", func() {
				p.Put(h("<input type='text' id='"), form+"-"+name, h("' form='"), form, h("' data-pair='"), name, h("'>"))
			})
		}
	}
	p.Put(h("</tbody>\n"))
}

// favicon serves the path that browsers request on their own.
func (s *Server) favicon(w *Response, _ *Request) error {
	icon := s.assets.Find(s.assets.Path("icon.svg"))
	w.SetHeader("cache-control", "public, max-age=86400")
	return w.all(icon.ContentType, icon.Raw)
}
