package pages

import (
	"strconv"
	"strings"

	"github.com/statsd-admin/statsd-admin/server/listeners"
)

func showListeners(v *view) error {
	var list []listeners.Listener
	if v.src.Listeners != nil {
		list = v.src.Listeners()
	}
	v.summary = plural(len(list), "listener")
	v.panel("listeners-head", "Listeners", func() { v.actions("listeners", "/listeners?format=json") }, func() {
		if len(list) == 0 {
			v.empty("The server has no listeners.")
			return
		}
		g := v.grid("listeners", "Listeners", "cards", order{}, column{head: "Name"}, column{head: "Addresses"}, column{head: "Protocol"}, column{head: "Direction"},
			column{head: "State"}, column{head: "Connections", class: "num"})
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
			if l.Protocol == listeners.UDP {
				protocol = "UDP"
			}
			g.cell(protocol, nil)
			g.cell(strings.ToLower(l.Direction.String()), nil)
			if l.Stopped {
				g.cell("drained", func() { v.word("warn", "drained") })
			} else {
				g.cell("active", func() { v.word("ok", "active") })
			}
			if n, ok := open[l.Name]; ok {
				g.num(strconv.Itoa(n))
			} else {
				g.shown("", none)
			}
		}
		g.end()
	})
	v.healthSwitch()
	v.drainForm()
	return nil
}

// connections returns the number of open connections by listener, as far as it is
// known.
func (v *view) connections() map[string]int {
	open := make(map[string]int)
	if v.src.Ingest == nil || !v.permits("/ingest") {
		return open
	}
	for _, l := range v.src.Ingest.Report().Listeners {
		if l.Protocol != "udp" && l.Protocol != "unixgram" {
			open[l.Name] = int(l.Connections)
		}
	}
	return open
}

// healthSwitch appends the buttons that fail and restore inbound health checks.
func (v *view) healthSwitch() {
	if v.src.Health == nil || !v.permits("/healthcheck/fail") {
		return
	}
	v.panel("health", "Inbound health checks", nil, func() {
		v.Put(h("<div class='pad row'>"))
		v.button("../healthcheck/fail", "Fail health checks", "Load balancers in front of this server stop sending it new traffic.")
		v.button("../healthcheck/ok", "Restore health checks", "Health checks pass again.")
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
