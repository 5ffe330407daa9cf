package pages

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/statsd-admin/statsd-admin/internal/redact"
)

// hit is a line of a configuration dump that contains the searched text.
type hit struct {
	path, value string
	in          *element
}

// element is an element of a list of resources, and the name of its resource once the
// search has come across it.
type element struct{ field, name string }

// mostHits is how many lines a search shows.
const mostHits = 200

// searchDump returns the keys and values of a dump that contain a text, whose case does
// not matter. A dump has one key or value a line, indented by its depth, so the lines
// are searched without decoding the whole.
func searchDump(dump []byte, wanted string) (hits []hit, more int) {
	wanted = strings.ToLower(wanted)
	var path []string // of the objects and lists around the line
	var index []int   // of the elements of the lists
	var in *element
	for line := range bytes.Lines(dump) {
		text := bytes.TrimLeft(line, " ")
		depth := len(line) - len(text)
		text = bytes.TrimRight(text, ",\n")
		if depth == 0 || len(text) == 0 || text[0] == '}' || text[0] == ']' {
			continue
		}
		path, index = path[:min(depth-1, len(path))], index[:min(depth, len(index))]
		for len(index) < depth {
			index = append(index, -1)
		}
		key, value, keyed := splitMember(text)
		if !keyed {
			index[depth-1]++
			key = fmt.Sprint(index[depth-1])
		}
		for len(path) < depth-1 {
			path = append(path, "")
		}
		path = append(path, key)
		if depth == 4 && !keyed { // configs, its element, a field, the element of a resource
			in = &element{field: path[2]}
		} else if depth < 4 {
			in = nil
		}
		if in != nil && in.name == "" && (key == "name" || key == "cluster_name") && depth <= 6 {
			in.name = unquoted(value)
		}
		shownValue := value
		if opens := value == "{" || value == "["; opens {
			shownValue = ""
		}
		if !strings.Contains(strings.ToLower(key), wanted) && !strings.Contains(strings.ToLower(shownValue), wanted) {
			continue
		}
		if len(hits) == mostHits {
			more++
			continue
		}
		hits = append(hits, hit{strings.Join(path, "."), unquoted(shownValue), in})
	}
	return hits, more
}

// splitMember splits a line of an object into its key and its value.
func splitMember(line []byte) (key, value string, ok bool) {
	if line[0] != '"' {
		return "", string(line), false
	}
	for i := 1; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '"':
			if rest, member := bytes.CutPrefix(line[i+1:], []byte(": ")); member {
				return string(line[1:i]), string(rest), true
			}
			return "", string(line), false
		}
	}
	return "", string(line), false
}

func unquoted(value string) string { return strings.Trim(value, `"`) }

// search appends the lines of the whole dump that contain a text.
func (v *view) search(wanted string, eds bool) {
	target := "/config_dump"
	if eds {
		target = url(target, "include_eds", "1")
	}
	reply := v.site.srv.Request("GET", target, nil)
	hits, more := searchDump(reply.Body, wanted)
	v.summary = plural(len(hits)+more, "line") + " found"
	v.panel("hits-head", "Lines with “"+wanted+"”", func() { v.actions("hits", target) }, func() {
		if len(hits) == 0 {
			v.empty("No key and no value contains the text.")
			return
		}
		g := v.grid("hits", "Lines that contain the text", "cards", order{}, column{head: "Resource"}, column{head: "Path"}, column{head: "Value"})
		for _, x := range hits {
			g.row("")
			name := none
			if x.in != nil && x.in.name != "" {
				name = x.in.name
			}
			g.head(name, func() {
				if x.in == nil || x.in.name == "" {
					v.Put(h("<i>"), none, h("</i>"))
					return
				}
				v.Put(h("<a class='wrap' href='"), url("config", "resource", x.in.field, "name", x.in.name), h("'>"), x.in.name, h("</a>"))
			})
			g.cell(x.path, v.text(h("<code class='wrap'>"), x.path, h("</code>")))
			g.cell(x.value, func() {
				if x.value == redact.Mark {
					v.redacted()
					return
				}
				v.Put(h("<code class='wrap'>"), x.value, h("</code>"))
			})
		}
		g.end()
		if more > 0 {
			v.empty("and ", count(more), " more lines")
		}
	})
}
