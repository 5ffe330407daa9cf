package pages

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/numfmt"
	"github.com/statsd-admin/statsd-admin/server/listeners"
	"github.com/statsd-admin/statsd-admin/store"
)

func showListeners(v *view) error {
	list := v.src.Listeners()
	v.summary = plural(len(list), "listener")
	draining, drained := 0, 0
	for _, l := range list {
		switch {
		case l.Stopped:
			drained++
		case !l.DrainEnd.IsZero():
			draining++
		}
	}
	switch {
	case draining > 0:
		v.summary = count(draining) + " draining of " + v.summary
	case drained > 0:
		v.summary = count(drained) + " drained of " + v.summary
	}
	v.panel("listeners-head", "Listeners", func() { v.actions("listeners", "/listeners?format=json") }, func() {
		if len(list) == 0 {
			v.empty("The server has no listeners.")
			return
		}
		g := v.grid("listeners", "Listeners", "cards dense", order{}, column{head: "Name"}, column{head: "Addresses"}, column{head: "Protocol"}, column{head: "Direction"},
			column{head: "State"}, column{head: "Drain time left", class: "num"}, column{head: "Connections", class: "num"}, column{head: "Per second", class: "num"})
		open := v.connections()
		for _, l := range list {
			var addresses []string
			for _, a := range l.Addresses {
				addresses = append(addresses, a.String())
			}
			g.row("")
			g.head(l.Name, v.text(h("<span class='wrap'>"), l.Name, h("</span>")))
			g.cell(strings.Join(addresses, " "), func() {
				for _, a := range addresses {
					v.Put(h("<code class='wrap block'>"), a, h("</code>"))
				}
			})
			protocol := "TCP"
			switch {
			case l.Protocol == listeners.UDP:
				protocol = "UDP"
			case open[l.Name].tls:
				protocol = "TCP, TLS"
			}
			g.cell(protocol, nil)
			g.cell(strings.ToLower(l.Direction.String()), nil)
			state, meaning, left := "active", "ok", time.Duration(-1)
			switch {
			case l.Stopped:
				state, meaning = "drained", "warn"
			case !l.DrainEnd.IsZero():
				state, meaning, left = "draining", "warn", max(l.DrainEnd.Sub(v.now), 0)
			}
			g.cell(state, func() { v.word(meaning, state) })
			if left < 0 {
				g.shown("", none)
			} else {
				g.cell(exactValue(left.Seconds()), v.text(numfmt.Span(left)))
			}
			n, ok := open[l.Name]
			if !ok {
				g.shown("", none)
				g.shown("", none)
				continue
			}
			g.num(strconv.FormatUint(n.open, 10))
			g.shown(exactValue(n.perSecond), numfmt.Rate(n.perSecond))
		}
		g.end()
	})
	v.healthSwitch()
	v.drainForm()
	return nil
}

// connections counts the connections of a listener.
type connections struct {
	open      uint64
	perSecond float64 // accepted in the last flush; NaN if that is not known
	tls       bool
}

// connections returns the connections by listener, as far as they are known.
func (v *view) connections() map[string]connections {
	list := make(map[string]connections)
	if v.src.Ingest == nil {
		return list
	}
	v.stats(func(stats *store.View) {
		for _, l := range v.src.Ingest.Report().Listeners {
			if l.Protocol == "udp" || l.Protocol == "unixgram" {
				continue
			}
			n := connections{l.Connections, math.NaN(), l.TLS}
			if c, ok := stats.Find("ingest.connections_total.listener." + l.Name); ok && v.src.History != nil {
				n.perSecond = v.spark(&c).latest
			}
			list[l.Name] = n
		}
	})
	return list
}

// healthSwitch appends the state of inbound health checks, and the button that changes it.
func (v *view) healthSwitch() {
	if v.src.Health == nil || !v.permits("/healthcheck/fail") {
		return
	}
	v.panel("health", "Inbound health checks", nil, func() {
		v.Put(h("<div class='pad row'>"))
		if v.src.Health.HealthFailed() {
			v.word("warn", "failing")
			v.button("../healthcheck/ok", "Restore health checks", "Health checks pass again.")
		} else {
			v.word("ok", "passing")
			v.button("../healthcheck/fail", "Fail health checks", "Load balancers in front of this server stop sending it new traffic.")
		}
		v.Put(h("</div>\n"))
	})
}

// button appends a form with one button that posts to a path. The effect is shown
// before it is sent.
func (v *view) button(path, label, effect string) {
	v.Put(h("<form method='post' action='"), path, h("' data-effect='"), effect, h("'><button type='submit' title='"), effect, h("'>"), label, h("</button></form>"))
}

// drainForm appends the form that drains listeners.
func (v *view) drainForm() {
	if v.src.Drains == nil || !v.permits("/drain_listeners") {
		return
	}
	node := ""
	if v.src.Info != nil {
		if info := v.src.Info(); info.Node != nil {
			node = info.Node.ID
		}
	}
	v.panel("drain", "Drain", nil, func() {
		v.Put(h("<form class='pad stack' method='post' action='../drain_listeners' data-effect='Listeners stop accepting.' data-word='drain_listeners' data-node='"), node, h("'>"+
			"<p>Draining stops listeners. It <b>cannot be undone</b>: stopped listeners start again only with the server.</p><div class='checks'>"))
		for _, o := range [...][3]string{
			{"graceful", "Gracefully", "wait for the drain time first, in which connections are closed one by one"},
			{"inboundonly", "Inbound only", "outbound listeners continue"},
			{"skip_exit", "Keep listeners", "with “gracefully”: keep listeners open after the drain time"},
		} {
			v.Put(h("<label class='check'><input type='checkbox' name='"), o[0], h("' value='1'> <span>"), o[1], h("</span> <span class='quiet'>"), o[2], h("</span></label>"))
		}
		v.Put(h("</div><div><button type='submit' class='destructive'>Drain listeners</button></div></form>\n"))
	})
}
