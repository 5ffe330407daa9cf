package pages

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/internal/numfmt"
	"github.com/statsd-admin/statsd-admin/internal/redact"
	"github.com/statsd-admin/statsd-admin/store"
)

// sinks returns the sinks by name, none if the client may not see them.
func (v *view) sinks() []flush.SinkStatus {
	if !v.permits("/sinks") {
		return nil
	}
	return slices.SortedStableFunc(slices.Values(v.src.Sinks()), func(a, b flush.SinkStatus) int { return cmp.Compare(a.Name, b.Name) })
}

// sinkFailure returns the error of a sink whose last attempt to send failed.
func sinkFailure(d *flush.SinkDelivery) (why string, failed bool) {
	if d == nil || d.LastError == nil || d.NextRetry.IsZero() && !d.LastErrorAt.After(d.LastSent) {
		return "", false
	}
	return redact.Masked("", d.LastError.Error()), true
}

// sinkFindings returns what needs attention in the sinks.
func (v *view) sinkFindings() (found []finding) {
	for _, x := range v.sinks() {
		d := x.Delivery
		if why, failed := sinkFailure(d); failed {
			last := "nothing sent yet"
			if !d.LastSent.IsZero() {
				last = "last sent " + numfmt.Age(max(v.now.Sub(d.LastSent), time.Second)) + " ago"
			}
			found = append(found, finding{"bad", "Sink " + x.Name + " cannot send", last + "; " + why, "server", "Server"})
		}
		if d != nil && d.Dropped+d.Lost > 0 {
			meaning, detail := v.lately("", "sink.dropped_packets.sink."+x.Name, "sink.lost_packets.sink."+x.Name)
			found = append(found, finding{meaning, "Sink " + x.Name + " lost " + plural(d.Dropped+d.Lost, "packet"), detail, "server", "Server"})
		}
		if x.Dropped > 0 {
			meaning, detail := v.lately("it does not return", "sink.dropped.sink."+x.Name)
			found = append(found, finding{meaning, "Sink " + x.Name + " did not get " + plural(x.Dropped, "snapshot"), detail, "server", "Server"})
		}
		if x.Joined > 0 {
			meaning, detail := v.lately("it is slower than the flush interval", "sink.joined.sink."+x.Name)
			found = append(found, finding{meaning, "Sink " + x.Name + " fell behind: " + plural(x.Joined, "snapshot") + " joined", detail, "server", "Server"})
		}
	}
	return found
}

// losing reports whether a sink lost packets in the last flush, such as packets to a UDP
// port where nobody listens.
func (v *view) losing(sink string) (lost bool) {
	v.stats(func(list *store.View) {
		for _, name := range [...]string{"sink.dropped_packets.sink.", "sink.lost_packets.sink."} {
			c, ok := list.Find(name + sink)
			lost = lost || ok && v.spark(&c).latest > 0
		}
	})
	return lost
}

// sinkTable appends the sinks and whether they deliver.
func (v *view) sinkTable() {
	list := v.sinks()
	if len(list) == 0 {
		return
	}
	v.panel("sinks-head", "Sinks", func() { v.actions("sinks", "/sinks?format=json") }, func() {
		g := v.grid("sinks", "Sinks of flushed stats", "cards dense", order{}, column{head: "Sink"}, column{head: "State"}, column{head: "Packets sent", class: "num"}, column{head: "Packets lost", class: "num"}, column{head: "Queue"}, column{head: "Snapshots joined", class: "num"})
		for _, x := range list {
			d := x.Delivery
			joined := func() { g.cell(fmt.Sprint(x.Joined), func() { v.counted(x.Joined, "warn") }) }
			g.row("")
			g.head(x.Name, func() {
				v.Put(h("<span class='wrap'>"), x.Name, h("</span>"))
				if d != nil {
					v.Put(h("<span class='sub wrap'>"), d.Kind, " ", d.Target, h("</span>"))
				}
			})
			if d == nil {
				for range 4 {
					g.shown("", none)
				}
				joined()
				continue
			}
			meaning, state := "ok", "sending"
			why, failed := sinkFailure(d)
			switch {
			case failed:
				meaning, state = "bad", "cannot send"
			case v.losing(x.Name):
				meaning, state = "warn", "losing packets"
			case d.LastSent.IsZero():
				meaning, state = "quiet", "nothing sent yet"
			}
			g.cell(state, func() {
				v.word(meaning, state)
				if failed {
					v.Put(h("<span class='sub wrap'>"), why, h("</span>"))
				}
			})
			g.num(fmt.Sprint(d.Sent))
			g.cell(fmt.Sprint(d.Dropped+d.Lost), func() { v.counted(d.Dropped+d.Lost, "bad") })
			g.cell(fmt.Sprint(d.Bytes), func() { v.queue(uint64(d.Bytes), uint64(d.LimitBytes)) })
			joined()
		}
		g.end()
	})
}
