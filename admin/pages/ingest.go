package pages

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/statsd-admin/statsd-admin/statsd/report"
)

func showIngest(v *view) error {
	if v.src.Ingest == nil {
		v.panel("none", "StatsD", nil, func() {
			v.missing("This server receives no StatsD lines. The section ", h("<code>statsd</code>"), " of the configuration adds listeners.")
		})
		return nil
	}
	rep := v.src.Ingest.Report()
	var lines, dropped uint64
	for _, l := range rep.Listeners {
		lines += l.Lines
		dropped += l.KernelDrops
	}
	v.summary = plural(lines, "line")
	if dropped > 0 {
		v.summary = plural(dropped, "packet") + " dropped"
	}
	v.explainForm()
	v.panel("in-head", "Listeners", func() { v.actions("ingest-listeners", "/ingest?format=json") }, func() { v.ingestListeners(rep.Listeners) })
	v.mapping()
	if len(rep.Relay) > 0 {
		v.panel("relay-head", "Relay", func() { v.actions("relay-targets", "/ingest?format=json") }, func() { v.relayTargets(rep.Relay) })
	}
	v.panel("rejects-head", "Rejected lines", func() { v.actions("rejects", "/ingest?format=json") }, func() { v.rejects(rep.Rejected) })
	v.Put(h("<div class='cols'>\n"))
	v.panel("limits-head", "Limits", nil, func() {
		v.Put(h("<dl class='pad pairs'>"))
		for _, x := range rep.Limits {
			v.limit(x)
		}
		v.Put(h("</dl>\n"))
		if rep.Expiry != "" {
			v.Put(h("<p class='pad quiet'>Expiry: "), rep.Expiry, h("</p>\n"))
		}
	})
	v.panel("kinds-head", "Received series", func() { v.actions("kinds", "/ingest?format=json") }, func() {
		g := v.grid("kinds", "Received series by kind", "", order{}, column{head: "Kind"}, column{head: "Series", class: "num"}, column{head: "Created", class: "num"}, column{head: "Expired", class: "num"})
		for _, k := range rep.Series {
			g.row("")
			g.head(k.Kind, nil)
			g.num(fmt.Sprint(k.Series))
			g.num(fmt.Sprint(k.Created))
			g.num(fmt.Sprint(k.Expired))
		}
		g.end()
	})
	v.tops(&rep)
	v.Put(h("</div>\n"))
	if len(rep.Conflicts) > 0 {
		v.conflicts(rep.Conflicts)
	}
	return nil
}

// explainForm appends a field for a line and, if there is one, how it is interpreted.
func (v *view) explainForm() {
	line := v.query.Value("line")
	v.Put(h("<form class='panel pad row' method='get' action='ingest'><label class='grow'><span class='vh'>A StatsD line to explain</span>"+
		"<input type='text' name='line' class='find' placeholder='page.views:1|c' autocomplete='off' value='"), line, h("'></label><button type='submit' class='primary'>Explain</button></form>\n"))
	if line == "" {
		return
	}
	x := v.src.Ingest.Explain([]byte(line))
	if x.Reason != "" {
		v.note("bad", "explained", func() {
			v.Put("Rejected: ", strings.ReplaceAll(x.Reason, "_", " "), h("<br><code class='wrap'>"))
			v.faulty(line, x.Offset)
			v.Put(h("</code>"))
		})
		return
	}
	meaning := "warn"
	if len(x.Samples) == 0 || slices.ContainsFunc(x.Samples, func(s report.Sample) bool { return !s.Dropped }) {
		meaning = "ok"
	}
	v.note(meaning, "explained", func() {
		v.Put("Accepted as ", x.Kind)
		for i := range x.Samples {
			s := &x.Samples[i]
			v.Put(h("<br>"), s.Kind, " ")
			if s.Stat != "" {
				v.Put(h("<a href='"), url("stat", "name", s.Stat), h("'><code class='wrap'>"), s.Stat, h("</code></a>"))
			}
			switch {
			case s.Dropped:
				v.Put("dropped", droppedBy(s))
			case s.Limit != "":
				v.Put(h(" <span class='warn'>held back by the limit "), s.Limit, h("</span>"))
			case !s.Known:
				v.Put(h(" <span class='quiet'>would be new</span>"))
			}
			if s.Series != "" {
				v.Put(h("<br><code class='wrap quiet'>"), s.Series, h("</code>"))
			}
			if s.Rule != nil {
				v.Put(h("<br><span class='quiet'>rule "), s.Rule.Number, h(" <code class='wrap'>"), s.Rule.Match, h("</code> "), s.Rule.Position, h("</span>"))
			}
		}
	})
}

// droppedBy says what drops a sample.
func droppedBy(s *report.Sample) string {
	switch {
	case s.Filter != "":
		return " by the filter " + s.Filter
	case s.Rule != nil:
		return " by its mapping rule"
	}
	return ", as no mapping rule matches"
}

func (v *view) ingestListeners(list []report.Listener) {
	if len(list) == 0 {
		v.empty("There are no StatsD listeners. List some in ", h("<code>statsd.listeners</code>."))
		return
	}
	g := v.grid("ingest-listeners", "StatsD listeners", "cards dense", order{}, column{head: "Listener"}, column{head: "Packets", class: "num"}, column{head: "Bytes", class: "num"}, column{head: "Lines", class: "num"},
		column{head: "Samples", class: "num"}, column{head: "Rejected", class: "num"}, column{head: "Limited", class: "num"}, column{head: "Dropped by the kernel", class: "num"},
		column{head: "Connections", class: "num"}, column{head: "Queue"})
	for i := range list {
		l := &list[i]
		var rejected uint64
		for _, n := range l.Rejected {
			rejected += n
		}
		g.row("")
		g.head(l.Name, func() {
			v.Put(h("<span class='wrap'>"), l.Name, h("</span>"))
			if l.Address != l.Name {
				v.Put(h("<code class='sub wrap'>"), l.Address, h("</code>"))
			}
			if l.TLS {
				v.Put(h("<span class='sub'>TLS</span>"))
			}
		})
		datagrams := l.Readers > 0
		if datagrams {
			g.num(fmt.Sprint(l.Packets))
		} else {
			g.shown("", none)
		}
		g.shown(fmt.Sprint(l.Bytes), sizeText(float64(l.Bytes)))
		g.num(fmt.Sprint(l.Lines))
		g.num(fmt.Sprint(l.Samples))
		g.cell(fmt.Sprint(rejected), func() { v.counted(rejected, "info") })
		g.cell(fmt.Sprint(l.Limited), func() { v.counted(l.Limited, "warn") })
		if datagrams {
			g.cell(fmt.Sprint(l.KernelDrops), func() { v.counted(l.KernelDrops, "warn") })
			g.shown("", none)
		} else {
			g.shown("", none)
			g.cell(fmt.Sprint(l.Connections), v.text(count(l.Connections), h("<span class='sub'>"), count(l.ConnectionsTotal), h(" accepted</span>")))
		}
		g.cell(fmt.Sprint(l.QueueBytes), func() {
			if l.QueueLimit == 0 {
				v.orNone("")
				return
			}
			v.queue(l.QueueBytes, l.QueueLimit)
		})
	}
	g.end()
}

func (v *view) relayTargets(list []report.RelayTarget) {
	g := v.grid("relay-targets", "Targets of the relay", "cards dense", order{}, column{head: "Target"}, column{head: "State"}, column{head: "Accepted", class: "num"}, column{head: "Sent", class: "num"},
		column{head: "Moved away", class: "num"}, column{head: "Moved here", class: "num"}, column{head: "Lost", class: "num"}, column{head: "Queue"})
	for i := range list {
		x := &list[i]
		g.row("")
		g.head(x.Name, func() {
			v.Put(h("<span class='wrap'>"), x.Name, h("</span>"))
			if x.Address != x.Name {
				v.Put(h("<code class='sub wrap'>"), x.Address, h("</code>"))
			}
			v.Put(h("<span class='sub'>"), x.Mode, h("</span>"))
		})
		state, meaning := "up", "ok"
		if !x.Up {
			state, meaning = "down", "bad"
		}
		g.cell(state, func() {
			v.word(meaning, state)
			if x.LastError != "" {
				v.Put(h("<span class='sub wrap'>"), x.LastError, h("</span>"))
			}
		})
		g.num(fmt.Sprint(x.Accepted))
		g.num(fmt.Sprint(x.Sent))
		g.cell(fmt.Sprint(x.MovedOut), func() { v.counted(x.MovedOut, "warn") })
		g.num(fmt.Sprint(x.MovedIn))
		lost := relayLost(x)
		g.cell(fmt.Sprint(lost), func() { v.counted(lost, "bad") })
		g.cell(fmt.Sprint(x.QueueBytes), func() { v.queue(uint64(x.QueueBytes), uint64(x.QueueLimit)) })
	}
	g.end()
}

// relayLost returns the lines that a target did not get, or perhaps not.
func relayLost(x *report.RelayTarget) uint64 { return x.Dropped + x.Ambiguous + x.Rejected + x.Long }

// queue appends the use of a queue in bytes.
func (v *view) queue(used, limit uint64) {
	v.Put(h("<span class='sub'>"))
	v.exact(float64(used), sizeText(float64(used)))()
	v.Put(" of ")
	v.exact(float64(limit), sizeText(float64(limit)))()
	v.Put(h("</span>"))
	share := float64(used) / float64(max(limit, 1))
	v.bar(share, nearLimit(share))
}

// counted appends a number that has a meaning unless it is zero.
func (v *view) counted(n uint64, meaning string) {
	if n == 0 {
		v.Put(h("<span class='quiet'>0</span>"))
		return
	}
	v.Put(h("<span class='"), meaning, h("'>"), count(n), h("</span>"))
}

// rejects appends the reasons with the last lines of each.
func (v *view) rejects(list []report.Rejected) {
	if len(list) == 0 {
		v.fine("No line was rejected")
		return
	}
	g := v.grid("rejects", "Rejected lines", "cards dense", order{}, column{head: "Reason"}, column{head: "Lines", class: "num"}, column{head: "Time"}, column{head: "Listener"}, column{head: "Sender"}, column{head: "Line"})
	for i := range list {
		r := &list[i]
		last := slices.Clone(r.Last[max(0, len(r.Last)-10):])
		slices.Reverse(last)
		kept := len(last) > 0
		if !kept { // they were counted by the process before a hot restart
			last = append(last, report.RejectedLine{})
		}
		rows, rest := last[:1], last[1:]
		if g.export {
			rows = last
		}
		for _, l := range rows {
			g.row("")
			g.head(r.Reason, v.text(capital(r.Reason)))
			g.num(fmt.Sprint(r.Count))
			g.cell(isoTime(l.Time), func() { v.when(l.Time) })
			g.cell(l.Listener, v.text(h("<span class='wrap'>"), l.Listener, h("</span>")))
			g.cell(l.Source, func() { v.orNone(l.Source) })
			g.cell(l.Line, func() {
				if !kept {
					v.Put(none)
					return
				}
				v.rejected(r.Reason, l.Line)
				v.earlier(i, r.Reason, rest)
			})
		}
	}
	g.end()
}

// rejected appends a line as a link that explains it. It is marked from what is wrong
// in it, unless it would not be rejected for this reason now.
func (v *view) rejected(reason, line string) {
	at := -1
	if x := v.src.Ingest.Explain([]byte(line)); x.Reason == reason {
		at = x.Offset
	}
	v.Put(h("<a class='mono wrap' href='"), url("ingest", "line", line), h("' title='Explain this line'>"))
	v.faulty(line, at)
	v.Put(h("</a>"))
}

// faulty appends a line with a mark from an offset on, unless this is negative.
func (v *view) faulty(line string, at int) {
	if at < 0 || line == "" {
		v.Put(visible(line))
		return
	}
	at = min(at, len(line))
	v.Put(controls(line[:at]), h("<mark class='bad'>"), controls(line[at:]), h("</mark>"))
}

// earlier appends the lines that were rejected before the last one.
func (v *view) earlier(at int, reason string, list []report.RejectedLine) {
	if len(list) == 0 {
		return
	}
	v.Put(h("<details class='small' id='earlier-"), at, h("'><summary>"), len(list), h(" earlier</summary><ul>"))
	for _, l := range list {
		v.Put(h("<li>"))
		v.when(l.Time)
		v.Put(" ", l.Source, " ")
		v.rejected(reason, l.Line)
		v.Put(h("</li>"))
	}
	v.Put(h("</ul></details>"))
}

// visible returns a line with its control characters as symbols.
func visible(line string) string { return cmp.Or(controls(line), "(empty)") }

// controls returns a part of a line with its control characters as symbols.
func controls(part string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r < 0x20:
			return 0x2400 + r
		case r == 0x7f:
			return 0x2421
		}
		return r
	}, part)
}

// tops appends the names and tags with the most series, and the newest series.
func (v *view) tops(rep *report.Report) {
	counts := func(id, title, head string, list []report.NameCount) {
		if len(list) == 0 {
			return
		}
		v.panel(id+"-head", title, func() { v.actions(id, "/ingest?format=json") }, func() {
			g := v.grid(id, title, "", order{}, column{head: head, class: "name"}, column{head: "Count", class: "num"})
			for _, x := range list[:min(10, len(list))] {
				g.row("")
				g.head(x.Name, func() { v.dotted(x.Name) })
				g.num(fmt.Sprint(x.Count))
			}
			g.end()
		})
	}
	counts("top-series", "Names with the most series", "Name", rep.TopSeries)
	counts("top-tags", "Tags with the most values", "Tag", rep.TopTags)
	if len(rep.Newest) == 0 {
		return
	}
	v.panel("newest-head", "Newest series", func() { v.actions("newest", "/ingest?format=json") }, func() {
		v.Put(h("<details class='pad' id='newest-list'><summary>Table of the newest series</summary>"))
		g := v.grid("newest", "Newest series", "cards dense", order{}, column{head: "Name", class: "name"}, column{head: "Kind"}, column{head: "Time"})
		last := slices.Clone(rep.Newest[max(0, len(rep.Newest)-10):])
		slices.Reverse(last)
		for _, x := range last {
			g.row("")
			g.head(x.Name, func() {
				v.dotted(x.Name)
				v.Put(h("<span class='sub'>"), x.Tags, h("</span>"))
			})
			g.cell(x.Kind, nil)
			g.cell(isoTime(x.Time), func() { v.when(x.Time) })
		}
		g.end()
		v.Put(h("</details>\n"))
	})
}

func (v *view) conflicts(list []report.Conflict) {
	v.panel("conflicts-head", "Conflicts of names", func() { v.actions("conflicts", "/ingest?format=json") }, func() {
		g := v.grid("conflicts", "Conflicts of names", "cards", order{}, column{head: "Name"}, column{head: "Kind"}, column{head: "Shares"}, column{head: "With"}, column{head: "Time"})
		for _, x := range list[:min(20, len(list))] {
			g.row("")
			g.head(x.Name, v.text(h("<span class='wrap'>"), x.Name, h("</span>")))
			g.cell(x.Group, nil)
			g.cell(x.What, nil)
			g.cell(x.Other, func() { v.orNone(x.Other) })
			g.cell(isoTime(x.Time), func() { v.when(x.Time) })
		}
		g.end()
	})
}

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
