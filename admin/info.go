package admin

import (
	"cmp"

	"github.com/statsd-admin/statsd-admin/internal/jsontext"
	"github.com/statsd-admin/statsd-admin/internal/redact"
)

func (s *Server) hotRestartVersion(w *Response, _ *Request) error {
	return w.text(200, s.src.HotRestartVersion())
}

func (s *Server) contention(w *Response, _ *Request) error {
	c, traced := s.src.Contention()
	if !traced {
		return w.text(200, "Mutex contention tracing is not enabled. To enable, run "+capital(s.product)+" with flag --enable-mutex-tracing.")
	}
	var j jsontext.Writer
	j.Struct(c)
	return w.json(j.Bytes())
}

func (s *Server) memory(w *Response, _ *Request) error {
	var j jsontext.Writer
	j.Struct(s.src.Memory())
	return w.json(j.Bytes())
}

func (s *Server) serverInfo(w *Response, r *Request) error {
	var info ServerInfo
	if s.src.Info != nil {
		info = s.src.Info()
	}
	var j jsontext.Writer
	j.BeginObject()
	j.Key("version").String(info.Version)
	j.Key("state").String(s.State())
	j.Key("uptime_current_epoch").Duration(info.UptimeCurrentEpoch.Truncate(1e9))
	j.Key("uptime_all_epochs").Duration(info.UptimeAllEpochs.Truncate(1e9))
	j.Key("hot_restart_version").String(s.src.HotRestartVersion())
	j.Key("command_line_options").Struct(info.CommandLine.shown())
	if info.Node != nil {
		j.Key("node")
		info.Node.write(&j, s.redactsUntyped(r))
	}
	j.Key("hot_restart_initializing").Bool(info.HotRestartInitializing)
	if info.PortableCounters {
		j.Key("portable_counters").Bool(true)
	}
	j.EndObject()
	return w.json(j.Bytes())
}

// shown returns the options with defaults and without secrets.
func (o CommandLine) shown() CommandLine {
	o.ConfigYAML = redact.Text(o.ConfigYAML)
	o.LocalAddressIPVersion = cmp.Or(o.LocalAddressIPVersion, "v4")
	o.Mode = cmp.Or(o.Mode, "Serve")
	o.DrainStrategy = cmp.Or(o.DrainStrategy, "Gradual")
	return o
}

func (n *Node) write(j *jsontext.Writer, redacted bool) {
	j.BeginObject()
	j.Key("id").String(n.ID)
	j.Key("cluster").String(n.Cluster)
	j.Key("metadata")
	if redacted {
		j.Value(redact.Fields(n.Metadata))
	} else {
		j.Value(redact.Plain(n.Metadata))
	}
	if n.Region != "" || n.Zone != "" || n.SubZone != "" {
		j.Key("locality").BeginObject()
		j.Key("region").String(n.Region)
		j.Key("zone").String(n.Zone)
		j.Key("sub_zone").String(n.SubZone)
		j.EndObject()
	}
	j.Key("user_agent_name").String(n.UserAgentName)
	j.Key("user_agent_build_version").BeginObject()
	j.Key("version").BeginObject()
	j.Key("major_number").Uint32(n.MajorNumber)
	j.Key("minor_number").Uint32(n.MinorNumber)
	j.Key("patch").Uint32(n.Fix)
	j.EndObject()
	j.EndObject()
	j.Key("extensions").BeginList()
	for _, name := range n.Extensions {
		j.BeginObject()
		j.Key("name").String(name)
		j.Key("category").String("")
		j.Key("type_descriptor").String("")
		j.Key("disabled").Bool(false)
		j.Key("type_urls").Strings(nil)
		j.EndObject()
	}
	j.EndList()
	j.Key("client_features").Strings(n.ClientFeatures)
	j.Key("listening_addresses").Strings(n.ListeningAddresses)
	j.Key("dynamic_parameters").BeginObject()
	j.EndObject()
	j.EndObject()
}
