package pages

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/internal/numfmt"
)

func showServer(v *view) error {
	v.summary = v.site.srv.State()
	v.Put(h("<div class='cols'>\n<div class='stack'>\n"))
	v.panel("info", "Server", func() { v.request("/server_info") }, v.serverFacts)
	v.panel("memory", "Memory", func() { v.request("/memory") }, v.memory)
	v.Put(h("</div>\n<div class='stack'>\n"))
	if v.src.Ingest != nil {
		rep := v.src.Ingest.Report()
		v.limits(&rep)
	}
	v.panel("options", "Command line options", func() { v.request("/server_info") }, v.options)
	v.Put(h("</div>\n</div>\n"))
	v.sinkTable()
	v.Put(h("<div class='cols'>\n<div class='stack'>\n"))
	v.unready()
	v.contention()
	v.lookups()
	v.Put(h("</div>\n<div class='stack'>\n"))
	v.diagnostics()
	v.Put(h("</div>\n</div>\n"))
	return nil
}

func (v *view) serverFacts() {
	v.pairs(func(pair func(string, func())) {
		pair("State", func() { v.state("word", "") })
		if v.src.Info == nil {
			return
		}
		info := v.src.Info()
		pair("Version", v.text(info.Version))
		pair("Uptime", func() { v.uptime(info.UptimeCurrentEpoch) })
		pair("Uptime of all epochs", v.exact(info.UptimeAllEpochs.Seconds(), numfmt.Span(info.UptimeAllEpochs)))
		pair("Hot restart", v.text(v.src.HotRestartVersion()))
		if n := info.Node; n != nil {
			pair("Node", v.text(n.ID))
			pair("Cluster", v.text(n.Cluster))
			var place []string
			for _, s := range [...]string{n.Region, n.Zone, n.SubZone} {
				if s != "" {
					place = append(place, s)
				}
			}
			if len(place) > 0 {
				pair("Locality", v.text(strings.Join(place, "/")))
			}
			pair("User agent", v.text(fmt.Sprintf("%s %d.%d.%d", n.UserAgentName, n.MajorNumber, n.MinorNumber, n.Fix)))
		}
	})
}

func (v *view) memory() {
	m := v.src.Memory()
	v.pairs(func(pair func(string, func())) {
		for _, x := range [...]struct {
			name  string
			bytes uint64
		}{{"Resident", m.TotalPhysicalBytes}, {"In use", m.Allocated}, {"Heap", m.HeapSize}, {"Free", m.PageheapFree}, {"Returned to the system", m.PageheapUnmapped}, {"Caches of threads", m.TotalThreadCache}} {
			pair(x.name, v.exact(float64(x.bytes), sizeText(float64(x.bytes))))
		}
	})
}

// contention appends how often and how long goroutines waited for mutexes.
func (v *view) contention() {
	v.panel("contention", "Waiting for mutexes", func() { v.request("/contention") }, func() {
		c, traced := v.src.Contention()
		if !traced {
			v.missing("Not traced; ", h("<code>--enable-mutex-tracing</code>"), " turns it on.")
			return
		}
		v.pairs(func(pair func(string, func())) {
			pair("Times", v.exact(float64(c.Contentions), count(c.Contentions)))
			pair("Cycles of the last wait", v.exact(float64(c.CurrentWaitCycles), count(c.CurrentWaitCycles)))
			pair("Cycles in all", v.exact(float64(c.LifetimeWaitCycles), count(c.LifetimeWaitCycles)))
		})
	})
}

// unready appends the targets that the initialization waits for.
func (v *view) unready() {
	if v.src.Unready == nil {
		return
	}
	list := v.src.Unready()
	v.panel("init", "Initialization", func() { v.request("/init_dump") }, func() {
		if len(list) == 0 {
			v.fine("Complete: nothing is waited for")
			return
		}
		v.pairs(func(pair func(string, func())) {
			for _, u := range list {
				pair(u.Name, v.text(strings.Join(u.Targets, ", ")))
			}
		})
	})
}

// options appends the command line options of /server_info. Options with default values are
// quiet, and collapsed.
func (v *view) options() {
	reply := v.site.srv.Request("GET", "/server_info", nil)
	var info struct {
		Options map[string]any `json:"command_line_options"`
	}
	_ = json.Unmarshal(reply.Body, &info) // the server's own JSON
	var set, rest []string
	byDefault := v.defaultOptions()
	for _, name := range sortedKeys(info.Options) {
		if byDefault[name] {
			rest = append(rest, name)
		} else {
			set = append(set, name)
		}
	}
	list := func(names []string, class string) {
		v.pairs(func(pair func(string, func())) {
			for _, name := range names {
				pair(name, v.text(h("<span class='"), class, h("'>"), cmp.Or(fmt.Sprint(info.Options[name]), none), h("</span>")))
			}
		})
	}
	if len(set) > 0 {
		list(set, "wrap")
	}
	if len(rest) > 0 {
		v.Put(h("<details id='defaults'><summary class='pad'>"), plural(len(rest), "option"), h(" with default values</summary>\n"))
		list(rest, "quiet")
		v.Put(h("</details>\n"))
	}
}

// defaultOptions returns the names of the options that have their default values.
func (v *view) defaultOptions() map[string]bool {
	out := make(map[string]bool)
	var info admin.ServerInfo
	if v.src.Info != nil {
		info = v.src.Info()
	}
	given, byDefault := reflect.ValueOf(info.CommandLine), reflect.ValueOf(info.DefaultCommandLine)
	for i := range given.NumField() {
		a, b := given.Field(i), byDefault.Field(i)
		if empty := a.Kind() == reflect.Slice && a.Len()+b.Len() == 0; empty || reflect.DeepEqual(a.Interface(), b.Interface()) {
			out[given.Type().Field(i).Tag.Get("json")] = true
		}
	}
	return out
}

// diagnostics appends the profilers, and what else changes the server as a whole.
func (v *view) diagnostics() {
	if !v.permits("/bundle") && !v.permits("/reset_counters") {
		return
	}
	v.panel("diagnostics", "Diagnostics", nil, func() {
		v.Put(h("<ul class='list'>"))
		item := func(name, about string, controls func()) {
			v.Put(h("<li><span class='grow'>"), name, h("<span class='sub wrap'>"), about, h("</span></span>"))
			controls()
			v.Put(h("</li>\n"))
		}
		profiler := func(p admin.Profiler, path, name string) {
			if p == nil || !v.permits(path) {
				return
			}
			item(name, "writes "+p.Path(), func() {
				v.button(".."+path+"?enable=y", "Start", "The profile is written to "+p.Path()+" when it stops.")
				v.button(".."+path+"?enable=n", "Stop", "The profile is written to "+p.Path()+".")
			})
		}
		profiler(v.src.CPUProfiler, "/cpuprofiler", "CPU profiler")
		profiler(v.src.HeapProfiler, "/heapprofiler", "Heap profiler")
		if v.permits("/heap_dump") {
			item("Heap profile", "of this moment", func() { v.Put(h("<a class='btn' href='../heap_dump'>Download</a>")) })
		}
		if v.permits("/bundle") {
			item("Support bundle", "an archive without secrets", func() {
				v.Put(h("<form class='row' method='post' action='../bundle' data-effect='An archive without secrets is downloaded.'><label><span class='vh'>Content</span><select name='cpu'>" +
					"<option value=''>without CPU profile</option><option value='5s'>with 5 s of CPU profile</option><option value='30s'>with 30 s of CPU profile</option></select></label><button type='submit'>Download</button></form>"))
			})
		}
		if v.permits("/reset_counters") {
			item("Counters", "become zero here, not in sinks", func() {
				v.button("../reset_counters", "Reset counters", "All counters become zero here. Stats sinks are not affected.")
			})
		}
		v.Put(h("</ul>\n"))
		if v.src.CPUProfiler == nil {
			v.Put(h("<p class='pad line quiet'>The profilers write files only with <code>admin.profile_path</code>.</p>\n"))
		}
	})
}

// lookups appends the recent lookups of stat names.
func (v *view) lookups() {
	symbols := v.site.srv.Store().Symbols()
	actions := func() { v.request("/stats/recentlookups") }
	if symbols.RecentEnabled() {
		actions = func() { v.actions("recent-lookups", "/stats/recentlookups") }
	}
	v.panel("lookups", "Recent lookups of stat names", actions, func() {
		v.Put(h("<div class='pad row'><span>"), plural(symbols.RecentTotal(), "lookup"), h(" in total</span>"))
		if v.permits("/stats/recentlookups/enable") {
			if symbols.RecentEnabled() {
				v.button("../stats/recentlookups/disable", "Stop", "Recording stops and the list is cleared.")
			} else {
				v.button("../stats/recentlookups/enable", "Record", "Lookups are recorded; each gets 40 to 100 ns slower.")
			}
			v.button("../stats/recentlookups/clear", "Clear", "The list and the count are cleared.")
		}
		v.Put(h("</div>\n"))
		if !symbols.RecentEnabled() {
			return
		}
		list := symbols.Recent()
		g := v.grid("recent-lookups", "Recent lookups", "", order{}, column{head: "Name", class: "name"}, column{head: "Count", class: "num"})
		for _, l := range list[:min(50, len(list))] {
			g.row("")
			g.head(l.Name, v.text(h("<span>"), l.Name, h("</span>")))
			g.num(fmt.Sprint(l.Count))
		}
		g.end()
	})
}
