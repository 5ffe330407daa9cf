package pages

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// everything are views that show each table and each number once.
var everything = []string{"", "stats", "stats?filter=^web&pins=web.hits&zero=1795341570000", "stat?name=web.hits", "stat?name=web.temperature&with=web.hits", "stat?name=web.took", "stat?name=page.views.site.de",
	"histograms?name=web.took&q=99.95", "histograms?name=web.sizes&compare=1&b=30s", "histograms?name=web.took&view=time", "explorer", "explorer?prefix=web.", "clusters", "clusters?cluster=plain", "listeners", "ingest", "runtime", "logging",
	"config", "config?search=n-1", "certs", "circuits", "audit", "server"}

// visit calls f for each element of a document, in order.
func visit(n *html.Node, f func(n *html.Node, attr map[string]string)) {
	if n.Type == html.ElementNode {
		attr := map[string]string{}
		for _, a := range n.Attr {
			attr[a.Key] = a.Val
		}
		f(n, attr)
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		visit(c, f)
	}
}

// within returns the nearest element of a name around n, nil if there is none.
func within(n *html.Node, name string) *html.Node {
	for n != nil && n.Data != name {
		n = n.Parent
	}
	return n
}

// TestEveryTableIsExported expects beside each table a link to its values as TSV, which
// work, and the commands that fetch them and the data behind them.
func TestEveryTableIsExported(t *testing.T) {
	srv := full(t, nil)
	for _, change := range []string{"/runtime_modify?limit=7&ttl=10m", "/logging?main=error"} {
		srv.Request("POST", change, nil)
	}
	tables := map[string]bool{}
	for _, target := range everything {
		body := request(srv, target, "").Body
		root, err := html.Parse(bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		visit(root, func(table *html.Node, attr map[string]string) {
			if table.Data != "table" {
				return
			}
			id := attr["id"]
			tables[id] = true
			link, commands := "", 0
			panel := within(table, "section")
			if panel == nil {
				t.Fatalf("%s: the table %s is in no part of the page", target, id)
			}
			visit(panel, func(n *html.Node, attr map[string]string) {
				switch {
				case attr["data-copy"] == "tsv" && strings.HasSuffix(attr["href"], "tsv="+id):
					link = attr["href"]
				case n.Data == "code" && within(n, "details") != nil && strings.HasPrefix(n.FirstChild.Data, "curl"):
					commands++
				}
			})
			if link == "" || commands < 1 {
				t.Errorf("%s: the table %s has the link %q and %d commands", target, id, link, commands)
				return
			}
			if reply := srv.Request("GET", Prefix+strings.TrimPrefix(link, "./"), nil); reply.Status != 200 || reply.Get("content-type") != typeTSV {
				t.Errorf("%s: %s: %d %s", target, link, reply.Status, reply.Body)
			}
		})
	}
	if len(tables) < 25 {
		t.Errorf("only %d tables", len(tables))
	}
}

// TestNumbersAreExact expects each number that is shown in short, or with separators, to
// have its exact value in an attribute, also where it is part of a cell.
func TestNumbersAreExact(t *testing.T) {
	srv := full(t, nil)
	short := regexp.MustCompile("^\u2212?[0-9][0-9,]*(\\.[0-9]+)?(\u202f[^ ]+| /s)?$")
	numbers := 0
	for _, target := range everything {
		body := request(srv, target, "").Body
		_, content, _ := bytes.Cut(body, []byte("<div id='content'>"))
		content, _, _ = bytes.Cut(content, []byte("</main>"))
		root, err := html.Parse(bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		visit(root, func(n *html.Node, _ map[string]string) {
			if n.FirstChild == nil || n.FirstChild.Type != html.TextNode || within(n, "svg") != nil || within(n, "details") != nil && within(n, "table") == nil || within(n, "option") != nil {
				return
			}
			text := strings.TrimSpace(n.FirstChild.Data)
			if !short.MatchString(text) || !strings.ContainsAny(text, ",.\u202f") {
				return
			}
			numbers++
			for at := n; at != nil; at = at.Parent {
				for _, a := range at.Attr {
					if a.Key == "data-value" && a.Val != "" {
						return
					}
				}
				if at.Data == "td" || at.Data == "dd" {
					break
				}
			}
			t.Errorf("%s: %q has no exact value", target, text)
		})
	}
	if numbers < 200 {
		t.Errorf("only %d numbers", numbers)
	}
}
