package admin

import (
	"slices"
	"strings"

	"github.com/statsd-admin/statsd-admin/internal/jsontext"
	"github.com/statsd-admin/statsd-admin/internal/oneline"
	"github.com/statsd-admin/statsd-admin/server/lifecycle"
	"github.com/statsd-admin/statsd-admin/server/listeners"
	"github.com/statsd-admin/statsd-admin/upstream/config"
)

func (s *Server) showListeners(w *Response, r *Request) error {
	if r.query.Value("format") == "json" {
		return w.json(listenersJSON(s.src.Listeners()))
	}
	var out []byte
	for _, l := range s.src.Listeners() {
		for _, a := range l.Addresses {
			out = append(out, oneline.Clean(l.Name)+"::"+oneline.Clean(a.String())+"\n"...)
		}
	}
	return w.all(typeText, out)
}

func listenersJSON(list []listeners.Listener) []byte {
	var j jsontext.Writer
	j.BeginObject()
	if len(list) > 0 {
		j.Key("listener_statuses").BeginList()
		for _, l := range list {
			j.BeginObject()
			if l.Name != "" {
				j.Key("name").String(l.Name)
			}
			if len(l.Addresses) > 0 {
				j.Key("local_address")
				writeAddress(&j, l.Addresses[0], l.Protocol)
			}
			if len(l.Addresses) > 1 {
				j.Key("additional_local_addresses").BeginList()
				for _, a := range l.Addresses[1:] {
					writeAddress(&j, a, l.Protocol)
				}
				j.EndList()
			}
			j.EndObject()
		}
		j.EndList()
	}
	j.EndObject()
	return j.Bytes()
}

// writeAddress writes an address, omitting default values.
func writeAddress(j *jsontext.Writer, a config.Address, p listeners.Protocol) {
	j.BeginObject()
	defer j.EndObject()
	if a.Pipe != "" {
		j.Key("pipe").BeginObject()
		j.Key("path").String(a.Pipe)
		j.EndObject()
		return
	}
	j.Key("socket_address").BeginObject()
	if p == listeners.UDP {
		j.Key("protocol").String("UDP")
	}
	j.Key("address").String(a.IP.Addr().String())
	if a.IP.Port() != 0 {
		j.Key("port_value").Uint32(uint32(a.IP.Port()))
	}
	j.EndObject()
}

func (s *Server) drainListeners(w *Response, r *Request) error {
	graceful, inboundOnly, skipExit := r.query.Has("graceful"), r.query.Has("inboundonly"), r.query.Has("skip_exit")
	if skipExit && !graceful {
		return badRequest("skip_exit requires graceful\n")
	}
	if s.src.Drains == nil {
		return missing("this server has no listeners to drain: the program has set none")
	}
	for _, l := range s.src.Listeners() {
		if (!inboundOnly || l.Direction == listeners.Inbound) && !l.Stopped && (!graceful || l.DrainEnd.IsZero()) {
			before := "open"
			if !l.DrainEnd.IsZero() {
				before = "draining"
			}
			r.Changed("listener "+l.Name, before, drained(graceful, skipExit))
		}
	}
	if r.DryRun() {
		return nil
	}
	if graceful {
		s.src.Drains.DrainGracefully(inboundOnly, skipExit)
	} else {
		s.src.Drains.Drain(inboundOnly)
	}
	return w.text(200, "OK\n")
}

// drained is what a drain does with a listener, in words.
func drained(graceful, skipExit bool) string {
	switch {
	case skipExit:
		return "draining, then open"
	case graceful:
		return "draining, then stopped"
	}
	return "stopped"
}

func (s *Server) initDump(w *Response, r *Request) error {
	mask := r.query.Value("mask")
	components := strings.Split(mask, ",")
	var list []lifecycle.Unready
	if s.src.Unready != nil {
		for _, u := range s.src.Unready() {
			if mask == "" || slices.Contains(components, u.Component) {
				list = append(list, u)
			}
		}
	}
	var j jsontext.Writer
	j.BeginObject()
	if len(list) > 0 {
		j.Key("unready_targets_dumps").BeginList()
		for _, u := range list {
			j.BeginObject()
			j.Key("name").String(u.Name)
			if len(u.Targets) > 0 {
				j.Key("target_names").Strings(u.Targets)
			}
			j.EndObject()
		}
		j.EndList()
	}
	j.EndObject()
	return w.json(j.Bytes())
}
