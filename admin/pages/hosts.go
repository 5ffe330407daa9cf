package pages

import (
	"fmt"
	"slices"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/numfmt"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

// hostColumns are the statistics of hosts that the table shows.
var hostColumns = [...]struct{ stat, head, title string }{
	{"cx_active", "Cx active", "open connections"}, {"cx_total", "Cx total", "connections since the start"}, {"cx_connect_fail", "Cx failed", "failed attempts to connect"},
	{"rq_active", "Rq active", "running requests"}, {"rq_total", "Rq total", "requests since the start"}, {"rq_error", "Rq errors", "failed requests"}, {"rq_timeout", "Rq timeouts", "requests that timed out"},
}

// hosts appends a page of the hosts of a cluster.
func (v *view) hosts(c *status.Cluster, total int) {
	offset, limit := v.window("250", "1000", "50")
	if offset >= total {
		offset = 0
	}
	shown := v.hostTable("hosts", c, offset, limit)
	v.pager(offset, shown, total, limit, "")
}

// mostUnfolded is how many hosts of a cluster the board shows, the unhealthy ones first.
const mostUnfolded = 25

// unfolded appends the first hosts of a cluster below its row on the board.
func (v *view) unfolded(c *status.Cluster, total int) {
	shown := 0
	if total > 0 {
		shown = v.hostTable("hosts-of-"+c.Name, c, 0, mostUnfolded)
	}
	v.Put(h("<p class='row'><a href='"), url("clusters", "cluster", c.Name), h("'>"))
	switch {
	case total == 0:
		v.Put("The cluster has no hosts.")
	case shown < total:
		v.Put("All ", count(total), " hosts and the circuit breakers")
	default:
		v.Put("All circuit breakers")
	}
	v.Put(h("</a></p>\n"))
}

// hostTable appends some hosts of a cluster, the unhealthy ones first, and returns how
// many.
func (v *view) hostTable(id string, c *status.Cluster, offset, limit int) (shown int) {
	columns := []column{{head: "Host"}, {head: "Health"}, {head: "Weight", class: "num"}, {head: "Zone"}, {head: "Canary"}}
	for _, h := range hostColumns {
		columns = append(columns, column{head: h.head, title: h.title, class: "num"})
	}
	columns = append(columns, column{head: "Success", title: "success rate in the last interval of outlier detection", class: "num"}, column{head: "Last check", exported: true}, column{head: "Result", exported: true}, column{head: "Since", exported: true})
	g := v.grid(id, "Hosts of "+c.Name, "cards dense", order{}, columns...)
	at := 0
	for _, wanted := range [...]status.Health{status.Unhealthy, status.Degraded, status.Healthy} {
		c.Hosts(func(host *status.Host) bool {
			if host.Health.Health() != wanted {
				return true
			}
			if at >= offset && shown < limit {
				v.host(g, host)
				shown++
			}
			at++
			return shown < limit
		})
	}
	g.end()
	return shown
}

func (v *view) host(g *grid, host *status.Host) {
	address := host.Pipe
	if host.Address.IsValid() {
		address = host.Address.String()
	}
	g.row("")
	g.head(address, func() {
		v.Put(h("<code class='wrap'>"), address, h("</code>"))
		if host.Hostname != "" && host.Hostname != host.Address.Addr().String() {
			v.Put(h("<span class='sub'>"), host.Hostname, h("</span>"))
		}
	})
	g.cell(host.Health.String(), func() {
		v.flags(host.Health)
		if c := host.Check; c != nil {
			word := "passing"
			if c.Failed {
				word = "failing"
			}
			v.checked("sub", c.Time, ": ", c.Result, "; ", v.lasting(word, c.Since))
		}
	})
	g.num(fmt.Sprint(host.Weight))
	zone := host.Zone
	if host.Region != "" {
		zone = host.Region + "/" + zone
	}
	if host.SubZone != "" {
		zone += "/" + host.SubZone
	}
	g.cell(zone, func() { v.orNone(zone) })
	canary := "no"
	if host.Canary {
		canary = "yes"
	}
	g.cell(canary, nil)
	for _, column := range hostColumns {
		at := slices.IndexFunc(host.Stats, func(s status.HostStat) bool { return s.Name == column.stat })
		if at < 0 {
			g.shown("", none)
			continue
		}
		g.num(fmt.Sprint(host.Stats[at].Value))
	}
	if host.SuccessRate < 0 {
		g.shown("-1", none)
	} else {
		g.shown(fmt.Sprint(host.SuccessRate), numfmt.Significant(host.SuccessRate)+thin+"%")
	}
	check := host.Check
	if check == nil {
		check = new(status.Check)
	}
	g.cell(isoTime(check.Time), nil)
	g.cell(check.Result, nil)
	g.cell(isoTime(check.Since), nil)
}

// lasting returns for how long something has been as a word says.
func (v *view) lasting(word string, since time.Time) string {
	return word + " for " + numfmt.Age(max(v.now.Sub(since), time.Second))
}

// checked appends how long ago a health check was, and more.
func (v *view) checked(class h, at time.Time, more ...any) {
	v.Put(h("<span class='"), class, h("' title='"), isoTime(at), h("'>checked "), numfmt.Age(max(v.now.Sub(at), time.Second)), " ago")
	v.Put(more...)
	v.Put(h("</span>"))
}

// orNone appends text, or a dash if it is empty.
func (v *view) orNone(text string) {
	if text == "" {
		v.Put(h("<i>"), none, h("</i>"))
		return
	}
	v.Put(text)
}

// flags appends the health of a host in words, each with the flag of the interface.
func (v *view) flags(flags status.Flags) {
	if flags == 0 {
		v.word("ok", "healthy")
		return
	}
	meaning := "info"
	switch flags.Health() {
	case status.Unhealthy:
		meaning = "bad"
	case status.Degraded:
		meaning = "warn"
	}
	for _, f := range flagWords {
		if flags&f.flag != 0 {
			v.Put(h("<span class='block' title='"), f.help, h("'>"))
			v.word(meaning, f.word)
			v.Put(h(" <code class='quiet wrap'>"), f.flag.String(), h("</code></span>"))
		}
	}
}
