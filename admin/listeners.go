package admin

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/statsd-admin/statsd-admin/internal/oneline"
	"github.com/statsd-admin/statsd-admin/internal/wire"
)

func (s *Server) listenerList() []Listener {
	if s.src.Listeners == nil {
		return nil
	}
	return s.src.Listeners()
}

func (s *Server) showListeners(w *Response, r *Request) error {
	if r.query.Value("format") == "json" {
		return w.json(listenersJSON(s.listenerList()))
	}
	var out []byte
	for _, l := range s.listenerList() {
		for _, a := range l.Addresses {
			out = append(out, oneline.Clean(l.Name)+"::"+oneline.Clean(a.String())+"\n"...)
		}
	}
	_, err := w.Write(out)
	return err
}

func listenersJSON(list []Listener) []byte {
	var j wire.Writer
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
				writeAddress(&j, l.Addresses[0])
			}
			if len(l.Addresses) > 1 {
				j.Key("additional_local_addresses").BeginList()
				for _, a := range l.Addresses[1:] {
					writeAddress(&j, a)
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

// writeAddress writes an address without the members that have default values.
func writeAddress(j *wire.Writer, addr net.Addr) {
	j.BeginObject()
	defer j.EndObject()
	ap, udp := netip.AddrPort{}, false
	switch a := addr.(type) {
	case *net.TCPAddr:
		ap = a.AddrPort()
	case *net.UDPAddr:
		ap, udp = a.AddrPort(), true
	default:
		j.Key("pipe").BeginObject()
		j.Key("path").String(addr.String())
		j.EndObject()
		return
	}
	j.Key("socket_address").BeginObject()
	if udp {
		j.Key("protocol").String("UDP")
	}
	j.Key("address").String(ap.Addr().Unmap().String())
	if ap.Port() != 0 {
		j.Key("port_value").Uint32(uint32(ap.Port()))
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
	if graceful {
		s.src.Drains.DrainGracefully(inboundOnly, skipExit)
	} else {
		s.src.Drains.Drain(inboundOnly)
	}
	return w.text(200, "OK\n")
}

func (s *Server) initDump(w *Response, r *Request) error {
	mask := r.query.Value("mask")
	components := strings.Split(mask, ",")
	var list []Unready
	if s.src.Unready != nil {
		for _, u := range s.src.Unready() {
			if mask == "" || slices.Contains(components, u.Component) {
				list = append(list, u)
			}
		}
	}
	var j wire.Writer
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
