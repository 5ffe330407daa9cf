// Package pages adds the live pages under /ui/ to an administration server:
//
//	if err := pages.Add(srv); err != nil { … }
//
// The pages are rendered by the server and work without scripts. A script from
// the server makes them live. What a page shows and changes is subject to the
// roles and modes of the endpoints behind it: a page offers a change only to
// clients that may use its endpoint, and sends it there.
//
// Every page is a URL with its whole state in the query. The parameter "tsv" with the
// id of a table returns that table as tab-separated values.
package pages

import (
	"cmp"
	"sync"
	"time"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/internal/markup"
)

// h is short for constant markup.
type h = markup.HTML

// Prefix is the path prefix of the pages.
const Prefix = "/ui/"

// site renders the pages of one server.
type site struct {
	srv  *admin.Server
	rows []row

	mu     sync.Mutex // guards health
	health health
}

// row is a page.
type row struct {
	path  string // behind Prefix
	nav   string // name in the navigation; "" keeps it out
	key   string // of the keyboard shortcut, pressed after g
	needs string // path of the endpoint whose data it shows; without it, the page is not in the navigation
	help  string // for the list of endpoints
	heavy bool
	show  func(*view) error
}

// table returns the pages in the order of the navigation.
func table() []row {
	return []row{
		{path: "", nav: "Overview", key: "v", needs: "/server_info", help: "overview of the server", show: showOverview},
		{path: "stats", nav: "Stats", key: "s", needs: "/stats", help: "stats: filter, sort, export", heavy: true, show: showStats},
		{path: "stat", needs: "/stats", help: "one stat", show: showStat},
		{path: "histograms", nav: "Histograms", key: "h", needs: "/stats", help: "histograms as pictures and tables", heavy: true, show: showHistograms},
		{path: "explorer", nav: "Explorer", key: "e", needs: "/stats/explore", help: "names by segment and tag: how many, how new, how large", heavy: true, show: showExplorer},
		{path: "clusters", nav: "Clusters", key: "c", needs: "/clusters", help: "clusters and their hosts", heavy: true, show: showClusters},
		{path: "listeners", nav: "Listeners", key: "l", needs: "/listeners", help: "listeners, and how to drain them", show: showListeners},
		{path: "ingest", nav: "Ingest", key: "i", needs: "/ingest", help: "StatsD input: listeners, rejected lines, limits", show: showIngest},
		{path: "runtime", nav: "Runtime", key: "r", needs: "/runtime", help: "runtime values by layer", show: showRuntime},
		{path: "logging", nav: "Logging", key: "o", needs: "/help", help: "log levels", show: showLogging},
		{path: "config", nav: "Config", key: "d", needs: "/config_dump", help: "loaded configuration", show: showConfig},
		{path: "certs", nav: "Certs", key: "t", needs: "/certs", help: "loaded certificates and their expiry", show: showCerts},
		{path: "circuits", nav: "Circuits", key: "u", needs: "/clusters", help: "requests and errors by cluster", heavy: true, show: showCircuits},
		{path: "audit", nav: "Audit", key: "a", needs: "/audit", help: "latest changes and refused changes", show: showAudit},
		{path: "server", nav: "Server", key: "p", needs: "/server_info", help: "version, options, memory, diagnostics", show: showServer},
	}
}

// Add adds the pages to srv. It returns an error if any of their paths is
// taken.
func Add(srv *admin.Server) error {
	s := &site{srv: srv, rows: table()}
	for i := range s.rows {
		page := &s.rows[i]
		err := srv.Handle(admin.Endpoint{
			Path: Prefix + page.path, Help: page.help, Hidden: true, OpenParams: true, Heavy: page.heavy,
			Serve: func(w *admin.Response, r *admin.Request) error { return s.serve(page, w, r) },
		})
		if err != nil {
			return err
		}
	}
	return srv.Handle(admin.Endpoint{Path: "/ui", Help: "redirect to the live pages", Hidden: true, Serve: toPages})
}

// toPages redirects to the address whose relative links work.
func toPages(w *admin.Response, _ *admin.Request) error {
	w.SetStatus(308)
	w.SetHeader("location", "ui/")
	_, err := w.WriteString("see ui/\n")
	return err
}

// serve renders a page.
func (s *site) serve(page *row, w *admin.Response, r *admin.Request) error {
	start := time.Now()
	v := &view{site: s, page: page, r: r, query: r.Query(), src: s.srv.Sources(), now: s.srv.Now(), title: page.nav, status: 200}
	v.tsv.id = v.query.Value("tsv")
	v.title = cmp.Or(v.title, page.help)
	if err := page.show(v); err != nil {
		return err
	}
	return v.send(w, start)
}
