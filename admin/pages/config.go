package pages

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/admin/dump"
	"github.com/statsd-admin/statsd-admin/internal/redact"
	"github.com/statsd-admin/statsd-admin/render"
)

// resource is a list of the configuration dump, as far as the page shows it.
type resource struct {
	field string
	shown []dump.Resource // the first ones
	total int
}

// mostShown is how much of a dump the page shows, in bytes of JSON. A tree of it has
// about twenty times as many.
const mostShown = 256 << 10

func showConfig(v *view) error {
	if v.src.ConfigDump == nil {
		return v.nothing("Configuration", "The server has no configuration dump.")
	}
	field, name := v.query.Value("resource"), v.query.Value("name")
	pattern := v.query.Value("filter")
	eds := v.query.Has("include_eds")
	v.Put(h("<form class='panel pad row' method='get' action='config'><label class='grow'><span class='vh'>Filter by name of the resource, a regular expression</span><input type='search' name='filter' class='find' placeholder='Name (regex)' value='"),
		pattern, h("'></label>"))
	v.Put(h("<label class='grow'><span class='vh'>Search in keys and values</span><input type='search' name='search' class='find' placeholder='Key or value' value='"),
		v.query.Value("search"), h("'></label>"))
	v.keep("tab", "resource", "open")
	v.chip("include_eds", "With endpoints", eds)
	v.Put(h("<button type='submit' class='primary'>Filter</button></form>\n"))
	if text := v.query.Value("search"); text != "" {
		v.search(text, eds)
	}
	sections := v.src.ConfigDump.Sections(eds)
	total := 0
	resources := make([][]resource, len(sections))
	err := v.site.srv.FilteredBy(render.RE2, pattern, func(f *render.Filter) (err error) {
		for i := range sections {
			for j := range sections[i].Lists {
				r, err := list(&sections[i].Lists[j], f)
				if err != nil {
					return err
				}
				total += r.total
				resources[i] = append(resources[i], r)
			}
		}
		return nil
	})
	if err != nil {
		return v.problem(err)
	}
	tab := slices.IndexFunc(sections, func(s dump.Section) bool { return s.Key == v.query.Value("tab") })
	v.tabs(sections, tab)
	v.Put(h("<div class='cols split' id='fresh'>\n<div class='stack'>\n"))
	for i := range sections {
		if tab < 0 || tab == i {
			v.section(&sections[i], resources[i], field, name)
		}
	}
	v.summary = cmp.Or(v.summary, plural(total, "resource"))
	v.Put(h("</div>\n<div class='stack'>\n"))
	section := v.query.Value("section")
	if field == "" && section == "" {
		section = "bootstrap"
		if tab >= 0 {
			section, field = opening(&sections[tab], resources[tab])
		}
	}
	v.dump(sections, section, field, name, pattern, eds)
	v.Put(h("</div>\n</div>\n"))
	v.saved()
	return nil
}

// tabs appends a link to each section, which then is shown alone. The index of the
// present section is negative if all are shown. Endpoints are in the dump only on request.
func (v *view) tabs(sections []dump.Section, present int) {
	v.Put(h("<div class='seg tabs' role='group' aria-label='Sections'>"))
	tab := func(key, title string, current bool, more ...string) {
		v.Put(h("<a href='"), v.here(append(more, "tab", key, "section", "", "resource", "", "name", "")...), h("' data-k='tab-"), key, h("'"))
		if current {
			v.Put(h(" aria-current='true'"))
		}
		v.Put(h(">"), title, h("</a>"))
	}
	tab("", "All", present < 0)
	for _, s := range v.src.ConfigDump.Sections(true) {
		shown := slices.IndexFunc(sections, func(other dump.Section) bool { return other.Key == s.Key })
		if shown < 0 {
			tab(s.Key, capital(s.Key), false, "include_eds", "1")
			continue
		}
		tab(s.Key, capital(s.Key), shown == present)
	}
	v.Put(h("</div>\n"))
}

// opening returns what the tab of a section shows first: its first list with resources,
// or if all are empty, its settings.
func opening(s *dump.Section, resources []resource) (section, field string) {
	for _, r := range resources {
		if r.total > 0 {
			return "", r.field
		}
	}
	return s.Key, ""
}

// saved appends the viewer of saved files, which is a script: opened files stay in
// the browser.
func (v *view) saved() {
	v.scripts = append(v.scripts, "config.js")
	v.Put(h("<div class='scripted'>\n"))
	v.panel("saved-head", "Saved files", nil, func() {
		v.Put(h("<div id='saved' class='pad row'><label>Open one, or two to compare <input type='file' multiple accept='.json,.txt,application/json,text/plain'></label>" +
			"<button type='button' disabled>Compare with the server</button>" +
			"<span class='quiet'>Answers of /config_dump, /clusters?format=json or /stats; nothing is sent</span></div><div id='saved-out'></div>\n"))
	})
	v.Put(h("</div>\n"))
}

// redacted appends the mark of a secret.
func (v *view) redacted() {
	v.Put(h("<span class='badge warn' title='The value is secret, or its name looks like that of a secret'>redacted</span>"))
}

// section appends a section with the names of its resources, and the refused updates.
func (v *view) section(s *dump.Section, resources []resource, field, name string) {
	id := "section-" + s.Key
	v.panel(id, capital(s.Key), func() {
		if len(s.Fields) > 0 {
			v.Put(h("<a href='"), v.here("resource", "", "name", "", "section", s.Key), h("'>Show<span class='vh'> the fields of "), s.Key, h("</span></a>"))
		}
	}, func() {
		if s.Version != "" || !s.Updated.IsZero() {
			v.Put(h("<p class='pad'>"))
			v.update(s.Version, s.Updated)
			v.Put(h("</p>\n"))
		}
		for name, why := range refused(s) {
			v.Put(h("<p class='pad wrap'>"))
			v.word("bad", "update refused")
			v.Put(" ", h("<code class='wrap'>"), name, h("</code> "), why, h("</p>\n"))
		}
		some := false
		for _, r := range resources {
			if r.total == 0 {
				continue
			}
			some = true
			v.Put(h("<h3 class='pad'><a href='"), v.here("resource", r.field, "name", "", "section", ""), h("'>"), r.field, h("</a> <span class='quiet'>"), count(r.total), h("</span></h3><ul class='names'>"))
			for _, x := range r.shown {
				v.Put(h("<li><a class='wrap' href='"), v.here("resource", r.field, "name", x.Name, "section", ""), h("'"))
				if x.Name == name && r.field == field {
					v.Put(h(" aria-current='true'"))
				}
				v.Put(h("><code>"), x.Name, h("</code>"))
				v.update(x.Version, x.Updated)
				v.Put(h("</a></li>"))
			}
			if more := r.total - len(r.shown); more > 0 {
				v.Put(h("<li class='quiet'>and "), count(more), h(" more: filter by name</li>"))
			}
			v.Put(h("</ul>\n"))
		}
		if !some && len(s.Lists) > 0 {
			v.Put(h("<p class='pad quiet'>no resources</p>\n"))
		}
	})
}

// refused yields the resources of a section whose last update was refused, and why.
func refused(s *dump.Section) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for i := range s.Lists {
			if s.Lists[i].Refused == nil {
				continue
			}
			for name, why := range s.Lists[i].Refused {
				if !yield(name, why) {
					return
				}
			}
		}
	}
}

// update appends the version and the time of an update, if there are any.
func (v *view) update(version string, at time.Time) {
	if version == "" && at.IsZero() {
		return
	}
	v.Put(h("<span class='quiet small'>"))
	if version != "" {
		v.Put("version ", h("<span class='wrap'>"), version, h("</span> "))
	}
	if !at.IsZero() {
		v.Put("updated ")
		v.when(at)
	}
	v.Put(h("</span>"))
}

// list returns the resources in a field that a filter selects.
func list(l *dump.List, f *render.Filter) (r resource, err error) {
	const most = 50
	r.field = l.Field
	for x := range l.Resources {
		if f != nil {
			if ok, err := f.Match(x.Name); err != nil {
				return r, err
			} else if !ok {
				continue
			}
		}
		r.total++
		if len(r.shown) < most && x.Name != "" {
			r.shown = append(r.shown, x)
		}
	}
	return r, nil
}

// dump appends the chosen tree: a resource, all of a field, or the settings
// of a section.
func (v *view) dump(sections []dump.Section, section, field, name, pattern string, eds bool) {
	pairs := []string{"resource", field}
	title := field
	switch {
	case name != "":
		pairs = append(pairs, "name_regex", quoteMeta(name))
		title = name
	case field != "" && pattern != "":
		pairs = append(pairs, "name_regex", ".*("+pattern+").*")
	case field == "":
		title = capital(section)
	}
	if eds {
		pairs = append(pairs, "include_eds", "1")
	}
	request := url("/config_dump", pairs...)
	if field == "" {
		mask := ""
		for i := range sections {
			if sections[i].Key == section {
				mask = strings.Join(sections[i].Fields, ",")
			}
		}
		request = url("/config_dump", "mask", mask)
	}
	reply := v.site.srv.Request("GET", request, nil)
	shown := reply.Status == 200 && len(reply.Body) <= mostShown
	v.panel("dump", title, func() {
		if shown {
			for _, x := range [...][2]string{{"all", "Expand all"}, {"none", "Collapse all"}} {
				v.Put(h("<a class='btn' href='"), v.here("open", x[0]), h("#dump'>"), x[1], h("</a>"))
			}
			v.Put(h("<button type='button' class='scripted' id='since' data-part='.."), request, h("'>Changes since opened</button>"))
		}
		v.Put(h("<a class='btn scripted' data-copy='json' href='.."), request, h("'>Copy</a><a class='btn' href='.."), request, h("' download='config.json'>JSON</a>"))
		v.request(request)
	}, func() {
		if reply.Status != 200 {
			v.empty(strings.TrimSpace(string(reply.Body)))
			return
		}
		if !shown {
			v.empty(fmt.Sprintf("%s are too much to show at once: choose a resource, or download the file.", sizeText(float64(len(reply.Body)))))
			return
		}
		v.Put(h("<div id='since-out'></div>\n<div class='pad tree scroll' tabindex='0'>"))
		if !v.tree(reply.Body) {
			v.Put(h("<pre>"), string(reply.Body), h("</pre>"))
		}
		v.Put(h("</div>\n"))
	})
}

// tree appends a JSON document as a tree that can be folded. It reports whether the
// document is valid; nesting deeper than 100 levels is not.
func (v *view) tree(document []byte) bool {
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	if !json.Valid(document) {
		return false
	}
	open := map[string]int{"all": math.MaxInt, "none": 1}[v.query.Value("open")]
	return v.node(d, "", 0, cmp.Or(open, 4))
}

// node appends the next value of a document. Levels from open on are folded.
func (v *view) node(d *json.Decoder, key string, depth, open int) bool {
	token, err := d.Token()
	if err != nil || depth > 100 {
		return false
	}
	brace, nested := token.(json.Delim)
	if !nested {
		v.leaf(key, token)
		return true
	}
	v.Put(h("<details"))
	if depth < open {
		v.Put(h(" open"))
	}
	v.Put(h("><summary><span class='key'>"), key, h("</span> <span class='quiet'>"), brace.String(), h("</span></summary>"))
	for i := 0; d.More(); i++ {
		next := fmt.Sprint(i)
		if brace == '{' {
			name, err := d.Token()
			if err != nil {
				return false
			}
			next = fmt.Sprint(name)
		}
		if !v.node(d, next, depth+1, open) {
			return false
		}
	}
	_, err = d.Token()
	v.Put(h("</details>\n"))
	return err == nil
}

func (v *view) leaf(key string, token json.Token) {
	v.Put(h("<div class='leaf'><span class='key'>"), key, h("</span> "))
	text := fmt.Sprint(token)
	switch {
	case text == redact.Mark:
		v.redacted()
	case token == nil:
		v.Put(h("<span class='quiet'>null</span>"))
	default:
		v.Put(h("<span class='wrap'>"), text, h("</span>"))
	}
	v.Put(h("</div>\n"))
}

// capital returns s with a capital first letter.
func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + strings.ReplaceAll(s[1:], "_", " ")
}
