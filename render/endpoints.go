package render

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/statsd-admin/statsd-admin/render/naming"
	"github.com/statsd-admin/statsd-admin/store"
)

// Endpoint is a host of an upstream cluster whose statistics are kept outside
// of the store.
type Endpoint struct {
	Cluster string // name of the cluster for statistics
	Address string // of the host, with its port, or a path
	Stats   []EndpointStat
}

// EndpointStat is a counter or a gauge of a host.
type EndpointStat struct {
	Name  string
	Gauge bool
	Value uint64
}

// Tags of the statistics of hosts, behind the product name.
const (
	tagCluster = ".cluster_name"
	tagAddress = ".endpoint_address"
)

// endpoint is an [Endpoint] whose statistics are shown.
type endpoint struct {
	prefix           string // of the full names, with a dot at the end
	cluster, address string
	stats            []EndpointStat // counters before gauges, each in order
}

// endpoints returns a copy of the hosts that o selects, ordered by the names of
// their statistics. Values with the same name are added up.
func (s *selection) endpoints(st *store.Store) ([]endpoint, error) {
	o := s.o
	if o.Endpoints == nil || o.Past != nil || !o.wants(Counters) && !o.wants(Gauges) || o.Hidden == HiddenOnly {
		return nil, nil
	}
	var all []endpoint
	var scratch []EndpointStat
	var err error
	o.Endpoints(func(e *Endpoint) bool {
		cluster := asSegment(e.Cluster)
		shown := endpoint{prefix: st.Own().FullName("cluster." + cluster + ".endpoint." + asSegment(e.Address) + "."), cluster: cluster, address: e.Address}
		if scratch, err = s.appendShown(scratch[:0], shown.prefix, e.Stats); len(scratch) > 0 {
			shown.stats = slices.Clone(scratch)
			all = append(all, shown)
		}
		return err == nil
	})
	slices.SortStableFunc(all, func(a, b endpoint) int { return cmp.Compare(a.prefix, b.prefix) })
	return united(all), err
}

// appendShown appends the selected stats to dst.
func (s *selection) appendShown(dst []EndpointStat, prefix string, stats []EndpointStat) ([]EndpointStat, error) {
	// The gauges of a host have moved if its counters have.
	moved := slices.ContainsFunc(stats, func(st EndpointStat) bool { return !st.Gauge && st.Value != 0 })
	for _, st := range stats {
		kind := Counters
		if st.Gauge {
			kind = Gauges
		}
		if !s.o.wants(kind) || s.o.UsedOnly && st.Value == 0 && !(st.Gauge && moved) {
			continue
		}
		if s.filter != nil {
			ok, err := s.filter.judgeName(append(append(s.filter.name[:0], prefix...), st.Name...))
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
		}
		dst = append(dst, st)
	}
	return dst, nil
}

// united merges the hosts with the same prefix, which are adjacent.
func united(all []endpoint) []endpoint {
	kept := all[:0]
	for _, e := range all {
		if n := len(kept) - 1; n >= 0 && kept[n].prefix == e.prefix {
			kept[n].stats = append(kept[n].stats, e.stats...)
		} else {
			kept = append(kept, e)
		}
	}
	for i := range kept {
		kept[i].stats = summed(kept[i].stats)
	}
	return kept
}

// summed sorts stats, and adds up those with the same name and kind.
func summed(stats []EndpointStat) []EndpointStat {
	slices.SortFunc(stats, func(a, b EndpointStat) int {
		if a.Gauge != b.Gauge {
			if a.Gauge {
				return 1
			}
			return -1
		}
		return cmp.Compare(a.Name, b.Name)
	})
	kept := stats[:0]
	for _, st := range stats {
		if n := len(kept) - 1; n >= 0 && kept[n].Name == st.Name && kept[n].Gauge == st.Gauge {
			kept[n].Value += st.Value
		} else {
			kept = append(kept, st)
		}
	}
	return kept
}

// asSegment returns name as it appears inside the names of stats, like the
// prefix of a scope.
func asSegment(name string) string {
	name = strings.TrimPrefix(strings.TrimSuffix(name, "."), ".")
	return strings.ReplaceAll(strings.ReplaceAll(name, ":", "_"), "\x00", "_")
}

// endpoints writes the blocks of counters and gauges of hosts: families by name,
// and in each of them the hosts.
func (e *exposer) endpoints() error {
	all, err := e.sel.endpoints(e.st)
	if err != nil || len(all) == 0 {
		return err
	}
	labels := make([][]byte, len(all))
	for i := range all {
		labels[i] = e.endpointLabels(&all[i])
	}
	taken := make(map[string]bool)
	for _, k := range []store.Kind{store.KindCounter, store.KindGauge} {
		for _, name := range endpointFamilies(all, k == store.KindGauge) {
			if !e.beginEndpoints(name, k, taken) {
				continue
			}
			for i := range all {
				for _, s := range all[i].stats {
					if s.Name == name && s.Gauge == (k == store.KindGauge) {
						e.number(labels[i], s.Value)
					}
				}
				if err := e.out.spill(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// endpointFamilies returns the names that statistics of a kind have, in order.
func endpointFamilies(all []endpoint, gauges bool) (names []string) {
	for i := range all {
		for _, s := range all[i].stats {
			if s.Gauge == gauges && !slices.Contains(names, s.Name) {
				names = append(names, s.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// beginEndpoints begins a family. If its metric name is taken by a family of
// the store or of other hosts, its kind is appended.
func (e *exposer) beginEndpoints(name string, k store.Kind, taken map[string]bool) bool {
	e.full = append(append(e.full[:0], e.st.Own().FullName("cluster.endpoint.")...), name...)
	m, ok := e.naming.AppendMetricBytes(e.name[:0], e.full, false, k == store.KindCounter)
	if !ok {
		return false
	}
	suffix := ""
	for taken[string(m)+suffix] || e.st.HasMetric(string(m)+suffix) {
		suffix += "_" + k.String()
	}
	e.name = append(m, suffix...)
	taken[string(e.name)] = true
	e.network, e.description = false, store.Description{}
	if !e.escaping.legacy() {
		e.escape(false, k, suffix)
	}
	e.metric = e.metric[:0]
	e.begin(e.name, e.underscored(), k)
	return true
}

// number writes the line of a counter or gauge from outside the store.
func (e *exposer) number(labels []byte, n uint64) {
	if e.dialect == dialectProtobuf {
		e.proto.scalar(e.out, labels, float64(n), 0)
		return
	}
	e.sample("", labels, "")
	e.out.buf = append(strconv.AppendUint(e.out.buf, n, 10), '\n')
}

// endpointLabels returns the labels of a host: the tags that every stat has, its
// cluster and its address.
func (e *exposer) endpointLabels(p *endpoint) (labels []byte) {
	product := e.st.Product()
	e.seen = e.seen[:0]
	add := func(tag, value string) {
		name := e.naming.AppendLabel(nil, tag)
		if !e.escaping.legacy() && e.escaping != AllowUTF8 {
			name = naming.AppendUnreserved(nil, string(e.escaping.appendLabel(nil, name)))
		}
		name = naming.DistinctLabel(name, e.seen)
		e.seen = append(e.seen, name)
		switch {
		case value == "": // as good as no label
		case e.dialect == dialectProtobuf:
			labels = appendProtoLabel(labels, name, value)
		default:
			if len(labels) > 0 {
				labels = append(labels, ',')
			}
			labels = append(append(labels, name...), '=', '"')
			labels = append(appendLabelValue(labels, value), '"')
		}
	}
	for _, t := range e.st.FixedTags() {
		add(t.Name, t.Value)
	}
	add(product+tagCluster, p.cluster)
	add(product+tagAddress, p.address)
	return labels
}
