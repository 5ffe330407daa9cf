package admin

import (
	"iter"
	"math"
	"strconv"

	"github.com/statsd-admin/statsd-admin/internal/jsontext"
	"github.com/statsd-admin/statsd-admin/internal/oneline"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

// configRows are the endpoints that show the configuration.
func (s *Server) configRows() []Endpoint {
	return []Endpoint{
		{Path: "/clusters", Group: groupClusters, Help: "show upstream clusters and the state of their hosts", Heavy: true, CPUBound: true, Serve: s.clusters, Params: []Param{
			textOrJSON, {Name: "filter", Help: "regular expression that matches part of the cluster name"},
		}},
		{Path: "/config_dump", Group: groupConfig, Help: "show the loaded configuration, without secrets", Heavy: true, CPUBound: true, Serve: s.configDump, Params: []Param{
			{Name: "resource", Help: "repeated field to show, such as static_clusters; all sections if empty"},
			{Name: "mask", Help: "fields to show of each section or resource: field.field,field"},
			{Name: "name_regex", Help: "regular expression that matches the full resource name"},
			{Name: "include_eds", Help: "include endpoints", Kind: ParamFlag},
		}},
	}
}

func (s *Server) clusters(w *Response, r *Request) error {
	return s.withFilter(w, r, func(f *partFilter) error {
		each := func(yield func(*status.Cluster) bool) {
			s.src.Clusters.Statuses(func(c *status.Cluster) bool { return f.err == nil && (!f.match(c.Name) || yield(c)) })
		}
		if r.query.Value("format") == "json" {
			return s.clustersJSON(w, each)
		}
		return s.clustersText(w, each)
	})
}

func (s *Server) clustersText(w *Response, each iter.Seq[*status.Cluster]) error {
	t := clusterText{w: w, buf: make([]byte, 0, responseBuffer)}
	t.line("version_info", s.src.Clusters.Version())
	each(t.cluster)
	t.send()
	return t.err
}

// breakerNames are the names of the priorities in the text format.
var breakerNames = [2]string{"default_priority::", "high_priority::"}

// clusterText writes clusters as lines of text: the prefix of the cluster or host, a
// name, "::" and a value.
type clusterText struct {
	w      *Response
	buf    []byte
	prefix []byte
	err    error
}

// clusterChunk is the amount of text to buffer before it is sent. The buffer has
// space for the lines of one more host, unless its names are very long.
const clusterChunk = responseBuffer - 4<<10

func (t *clusterText) cluster(c *status.Cluster) bool {
	t.prefix = append(append(t.prefix[:0], oneline.Clean(c.Name)...), "::"...)
	t.line("observability_name", c.ObservabilityName)
	if o := c.Outlier; o != nil {
		t.rate("outlier::success_rate_average", o.Average, 6)
		t.rate("outlier::success_rate_ejection_threshold", o.Threshold, 6)
		t.rate("outlier::local_origin_success_rate_average", o.LocalAverage, 6)
		t.rate("outlier::local_origin_success_rate_ejection_threshold", o.LocalThreshold, 6)
	}
	owner := len(t.prefix)
	for i := range c.Breakers {
		b := &c.Breakers[i]
		t.prefix = append(t.prefix[:owner], breakerNames[i]...)
		t.number("max_connections", b.MaxConnections)
		t.number("max_pending_requests", b.MaxPendingRequests)
		t.number("max_requests", b.MaxRequests)
		t.number("max_retries", b.MaxRetries)
	}
	t.prefix = t.prefix[:owner]
	t.bool("added_via_api", c.AddedViaAPI)
	if c.EDSServiceName != "" {
		t.line("eds_service_name", c.EDSServiceName)
	}
	if c.Hosts != nil {
		c.Hosts(func(h *status.Host) bool {
			t.prefix = append(appendHostAddress(t.prefix[:owner], h), "::"...)
			t.host(h)
			return t.err == nil
		})
	}
	t.spill()
	return t.err == nil
}

func (t *clusterText) host(h *status.Host) {
	for i := range h.Stats {
		t.number(h.Stats[i].Name, h.Stats[i].Value)
	}
	t.line("hostname", h.Hostname)
	for _, name := range [...]string{"health_flags", "healthy"} {
		t.name(name)
		t.buf = append(h.Health.AppendText(t.buf), '\n')
	}
	t.number("weight", uint64(h.Weight))
	t.line("region", h.Region)
	t.line("zone", h.Zone)
	t.line("sub_zone", h.SubZone)
	t.bool("canary", h.Canary)
	t.number("priority", uint64(h.Priority))
	t.rate("success_rate", h.SuccessRate, -1)
	t.rate("local_origin_success_rate", h.LocalOriginSuccessRate, -1)
	t.spill()
}

func appendHostAddress(dst []byte, h *status.Host) []byte {
	if h.Address.IsValid() {
		return h.Address.AppendTo(dst)
	}
	return append(dst, oneline.Clean(h.Pipe)...)
}

func (t *clusterText) name(name string) {
	t.buf = append(t.buf, t.prefix...)
	t.buf = append(t.buf, name...)
	t.buf = append(t.buf, "::"...)
}

func (t *clusterText) line(name, value string) {
	t.name(name)
	t.buf = append(append(t.buf, oneline.Clean(value)...), '\n')
}

func (t *clusterText) number(name string, n uint64) {
	t.name(name)
	t.buf = append(strconv.AppendUint(t.buf, n, 10), '\n')
}

func (t *clusterText) bool(name string, b bool) {
	t.name(name)
	t.buf = append(strconv.AppendBool(t.buf, b), '\n')
}

// rate writes a number with the given significant digits, or with the shortest exact
// representation if negative.
func (t *clusterText) rate(name string, f float64, digits int) {
	t.name(name)
	t.buf = append(strconv.AppendFloat(t.buf, f, 'g', digits, 64), '\n')
}

// spill sends the buffered text once there is enough of it.
func (t *clusterText) spill() {
	if len(t.buf) >= clusterChunk {
		t.send()
	}
}

func (t *clusterText) send() {
	if t.err == nil {
		_, t.err = t.w.Write(t.buf)
	}
	t.buf = t.buf[:0]
}

func (s *Server) clustersJSON(w *Response, each iter.Seq[*status.Cluster]) error {
	w.SetType(typeJSON)
	j := clusterJSON{Writer: jsontext.To(w)}
	j.BeginObject()
	some := false
	each(func(c *status.Cluster) bool {
		if !some {
			j.Key("cluster_statuses").BeginList()
			some = true
		}
		j.cluster(c)
		return j.Err() == nil
	})
	if some {
		j.EndList()
	}
	j.EndObject()
	return j.Finish()
}

// clusterJSON writes clusters as the Clusters message, omitting default values.
type clusterJSON struct{ *jsontext.Writer }

func (j clusterJSON) cluster(c *status.Cluster) {
	j.BeginObject()
	j.optional("name", c.Name)
	j.flag("added_via_api", c.AddedViaAPI)
	if o := c.Outlier; o != nil && o.Threshold > 0 {
		j.percent("success_rate_ejection_threshold", o.Threshold)
	}
	if c.Hosts != nil {
		some := false
		c.Hosts(func(h *status.Host) bool {
			if !some {
				j.Key("host_statuses").BeginList()
				some = true
			}
			j.host(h)
			return j.Err() == nil
		})
		if some {
			j.EndList()
		}
	}
	if o := c.Outlier; o != nil && o.LocalThreshold > 0 {
		j.percent("local_origin_success_rate_ejection_threshold", o.LocalThreshold)
	}
	j.Key("circuit_breakers").BeginObject()
	j.Key("thresholds").BeginList()
	for i := range c.Breakers {
		b := &c.Breakers[i]
		j.BeginObject()
		if i > 0 {
			j.Key("priority").String("HIGH")
		}
		j.limit("max_connections", b.MaxConnections)
		j.limit("max_pending_requests", b.MaxPendingRequests)
		j.limit("max_requests", b.MaxRequests)
		j.limit("max_retries", b.MaxRetries)
		j.EndObject()
	}
	j.EndList()
	j.EndObject()
	j.optional("observability_name", c.ObservabilityName)
	j.optional("eds_service_name", c.EDSServiceName)
	j.EndObject()
}

func (j clusterJSON) host(h *status.Host) {
	j.BeginObject()
	j.address(h)
	j.stats(h.Stats)
	j.health(h.Health)
	if h.SuccessRate >= 0 {
		j.percent("success_rate", h.SuccessRate)
	}
	if h.Weight != 0 {
		j.Key("weight").Uint32(h.Weight)
	}
	j.optional("hostname", h.Hostname)
	if h.Priority != 0 {
		j.Key("priority").Uint32(h.Priority)
	}
	if h.LocalOriginSuccessRate >= 0 {
		j.percent("local_origin_success_rate", h.LocalOriginSuccessRate)
	}
	j.Key("locality").BeginObject()
	j.optional("region", h.Region)
	j.optional("zone", h.Zone)
	j.optional("sub_zone", h.SubZone)
	j.EndObject()
	j.EndObject()
}

func (j clusterJSON) address(h *status.Host) {
	j.Key("address").BeginObject()
	if h.Address.IsValid() {
		j.Key("socket_address").BeginObject()
		j.Key("address").String(h.Address.Addr().String())
		j.Key("port_value").Uint32(uint32(h.Address.Port()))
	} else {
		j.Key("pipe").BeginObject()
		j.optional("path", h.Pipe)
	}
	j.EndObject()
	j.EndObject()
}

// stats writes the counters and then the gauges.
func (j clusterJSON) stats(stats []status.HostStat) {
	if len(stats) == 0 {
		return
	}
	j.Key("stats").BeginList()
	for _, gauges := range [...]bool{false, true} {
		for i := range stats {
			stat := &stats[i]
			if stat.Gauge != gauges {
				continue
			}
			j.BeginObject()
			if gauges {
				j.Key("type").String("GAUGE")
			}
			if stat.Value != 0 {
				j.Key("value").Uint64(stat.Value)
			}
			j.optional("name", stat.Name)
			j.EndObject()
		}
	}
	j.EndList()
}

func (j clusterJSON) health(h status.Flags) {
	j.Key("health_status").BeginObject()
	j.flag("failed_active_health_check", h&status.FailedActiveHC != 0)
	j.flag("failed_outlier_check", h&status.FailedOutlierCheck != 0)
	eds := "HEALTHY"
	switch {
	case h&status.EDSStatusDraining != 0:
		eds = "DRAINING"
	case h&status.FailedEDSHealth != 0:
		eds = "UNHEALTHY"
	case h&status.DegradedEDSHealth != 0:
		eds = "DEGRADED"
	}
	j.Key("eds_health_status").String(eds)
	j.flag("failed_active_degraded_check", h&status.DegradedActiveHC != 0)
	j.flag("pending_dynamic_removal", h&status.PendingDynamicRemoval != 0)
	j.flag("pending_active_hc", h&status.PendingActiveHC != 0)
	j.flag("excluded_via_immediate_hc_fail", h&status.ExcludedViaImmediateHCFail != 0)
	j.flag("active_hc_timeout", h&status.ActiveHCTimeout != 0)
	j.EndObject()
}

func (j clusterJSON) optional(name, s string) {
	if s != "" {
		j.Key(name).String(s)
	}
}

func (j clusterJSON) flag(name string, b bool) {
	if b {
		j.Key(name).Bool(true)
	}
}

// percent writes a Percent message, omitted if 0.
func (j clusterJSON) percent(name string, f float64) {
	j.Key(name).BeginObject()
	if f != 0 {
		j.Key("value").Value(f)
	}
	j.EndObject()
}

// limit writes a field of type uint32.
func (j clusterJSON) limit(name string, n uint64) {
	j.Key(name).Uint32(uint32(min(n, math.MaxUint32)))
}
