package remotewrite

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"slices"
	"unicode/utf8"

	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/render/naming"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// label is a label of a series. It shares memory with the names of the store. The name
// never changes.
type label struct {
	name, value []byte
	hash        uint64 // of the value
	lasting     bool   // the value never changes
}

// namer makes the names and labels of series as in the exposition formats. One
// goroutine uses it.
type namer struct {
	rules    *naming.Rules
	prefix   string
	external []label // of every series that has no label of the name itself
	seed     maphash.Seed

	metric label // of the series, without a suffix
	room   []byte
	labels []label
	taken  [][]byte // label names
	full   []byte
	le     []byte
	named  []byte // the metric name with a suffix
	text   []byte // value of the label with the name of the stat
	order  []int  // of the labels of the series before by name, and those names
	names  [][]byte
	sorted []label

	patterns sinkqueue.Patterns[pattern]
}

// pattern is what the series of many counters or gauges have in common.
type pattern struct {
	labels []label // in order
	tags   []int   // by label: the tag that has the value, or -1
	hash   uint64  // of the values that are known
	meta   metadata
	none   bool // nothing is left of the name
	shards []encoded
}

// encoded are the parts of an encoded series that it has in common with others of a
// batch: before each value of a tag, behind the last one, and the metadata.
type encoded struct {
	batch uint64 // 0: none
	parts parts
}

// parts are parts of an encoding, with the values of tags between them.
type parts struct {
	all  []byte
	ends []int
}

// add adds a part, by a function that appends it.
func (p *parts) add(add func(dst []byte) []byte) {
	p.all = add(p.all)
	p.ends = append(p.ends, len(p.all))
}

func (p *parts) at(i int) []byte {
	if i == 0 {
		return p.all[:p.ends[0]]
	}
	return p.all[p.ends[i-1]:p.ends[i]]
}

// statLabel distinguishes stats that share a metric name and labels.
const statLabel = "stat_name"

func newNamer(st *store.Store, prefix string, external []tags.Tag) *namer {
	n := &namer{rules: st.Naming(), prefix: prefix, seed: maphash.MakeSeed()}
	for _, t := range external {
		value := t.Value
		value = cmp.Or(value, "true")
		n.external = append(n.external, n.label(n.rules.AppendLabel(nil, t.Name), bytes.ToValidUTF8([]byte(value), []byte("\ufffd")), true))
	}
	return n
}

// read makes the series of the stat under c current. It returns false if nothing is
// left of its name.
func (n *namer) read(c *store.Cursor, k store.Kind) bool {
	f, network, sp := c.Family(), c.Network(), c.Series()
	var lasting []byte
	if f != nil {
		lasting = f.Derived(naming.SlotMetric+int(k), func(f *store.Name) []byte {
			m, _ := n.rules.AppendMetric(nil, f.String(), f.Network(), k == store.KindCounter)
			return m
		})
	}
	if len(lasting) > 0 && n.prefix == "" && sp == nil {
		if m := &n.metric; !m.lasting || &m.value[0] != &lasting[0] {
			*m = n.label(nameLabel, lasting, true)
		}
	} else if !n.compose(c, k, lasting, sp) {
		return false
	}
	n.labels, n.taken = n.labels[:0], n.taken[:0]
	valid := c.Plain()
	for _, l := range c.Labels() {
		value := l.Value
		if len(value) == 0 {
			if !network {
				continue // as good as no label
			}
			value = []byte("true")
		}
		if !valid && !utf8.Valid(value) {
			value = bytes.ToValidUTF8(value, []byte("\ufffd"))
		}
		name := naming.DistinctLabel(l.Name.Derived(naming.SlotLabel, func(l *store.Name) []byte {
			return n.rules.AppendLabel(nil, l.String())
		}), n.taken)
		n.taken = append(n.taken, name)
		n.labels = append(n.labels, n.label(name, value, false))
	}
	if sp != nil && sp.Merged {
		n.text = bytes.ToValidUTF8(c.AppendName(n.text[:0]), []byte("\ufffd"))
		n.labels = append(n.labels, n.label(naming.DistinctLabel([]byte(statLabel), n.taken), n.text, false))
	}
	for _, x := range n.external {
		if !slices.ContainsFunc(n.taken, func(t []byte) bool { return bytes.Equal(t, x.name) }) {
			n.labels = append(n.labels, x)
		}
	}
	return true
}

// learn sets the labels of m, the pattern of the stat under c with a number of tags. The
// stat must not have a [store.Series].
func (n *namer) learn(m *pattern, c *store.Cursor, tags, shards int) {
	m.labels, m.tags, m.hash = m.labels[:0], m.tags[:0], 0
	m.shards = slices.Grow(m.shards[:0], shards)[:shards]
	for i := range m.shards {
		m.shards[i].batch = 0
	}
	if m.none = !n.read(c, c.Kind()); m.none {
		return
	}
	for i, l := range n.all("", "") {
		tag := n.order[i]
		if tag >= tags { // it is the metric name or a label of the sink
			tag = -1
			m.hash += l.hash
			if !l.lasting {
				l.value = slices.Clone(l.value)
			}
		}
		m.labels, m.tags = append(m.labels, l), append(m.tags, tag)
	}
}

// fill sets the labels of a stat with pattern m that have the values of tags. It returns
// the hash of all.
func (n *namer) fill(m *pattern, values [][]byte) (hash uint64) {
	hash = m.hash
	for i, tag := range m.tags {
		if tag >= 0 {
			l := &m.labels[i]
			l.value, l.hash = values[tag], maphash.Bytes(n.seed, values[tag])
			hash += l.hash
		}
	}
	return hash
}

// compose makes the metric name of the stat under c: the prefix, the name of its family
// or that for its full name, and its suffix. It returns false if nothing is left of it.
func (n *namer) compose(c *store.Cursor, k store.Kind, family []byte, sp *store.Series) bool {
	name := n.room[:0]
	if n.prefix != "" {
		name = append(append(name, n.prefix...), '_')
	}
	at := len(name)
	if c.Family() != nil {
		name = append(name, family...)
	} else {
		n.full = c.AppendName(n.full[:0])
		if m, ok := n.rules.AppendMetricBytes(name, n.full, c.Network(), k == store.KindCounter); ok {
			name = m
		}
	}
	if len(name) == at {
		return false
	}
	if sp != nil {
		name = append(name, sp.Suffix...)
	}
	n.room = name
	n.metric = n.label(nameLabel, name, false)
	return true
}

func (n *namer) label(name, value []byte, lasting bool) label {
	return label{name, value, maphash.Bytes(n.seed, value), lasting}
}

// nameLabel is the label that holds the metric name, boundLabel the bound of a bucket.
var (
	nameLabel  = []byte("__name__")
	boundLabel = []byte("le")
)

// all returns the labels of the current series in the order of their names, with a
// suffix of the metric name and, unless le is empty, the bound of a bucket. The result
// is valid until the next call.
func (n *namer) all(suffix, le string) []label {
	metric := n.metric
	if suffix != "" {
		n.named = append(append(n.named[:0], metric.value...), suffix...)
		metric = n.label(nameLabel, n.named, false)
	}
	labels := append(n.labels, metric)
	if le != "" {
		n.le = append(n.le[:0], le...)
		labels = append(labels, n.label(boundLabel, n.le, false))
	}
	if !n.sameNames(labels) {
		n.sort(labels)
	}
	n.sorted = n.sorted[:0]
	for _, i := range n.order {
		n.sorted = append(n.sorted, labels[i])
	}
	return n.sorted
}

// sameNames reports whether the series before has the same label names.
func (n *namer) sameNames(labels []label) bool {
	return slices.EqualFunc(labels, n.names, func(l label, name []byte) bool {
		return &l.name[0] == &name[0] && len(l.name) == len(name)
	})
}

// sort sets the order of label names.
func (n *namer) sort(labels []label) {
	n.order, n.names = n.order[:0], n.names[:0]
	for i, l := range labels {
		n.order, n.names = append(n.order, i), append(n.names, l.name)
	}
	// There are a few, and most are in order.
	for i := 1; i < len(n.order); i++ {
		for j := i; j > 0 && bytes.Compare(n.names[n.order[j]], n.names[n.order[j-1]]) < 0; j-- {
			n.order[j], n.order[j-1] = n.order[j-1], n.order[j]
		}
	}
}

// hash returns a hash of the values of the labels of the current series, without those
// that distinguish the series of a histogram.
func (n *namer) hash() uint64 {
	h := n.metric.hash
	for i := range n.labels {
		h += n.labels[i].hash
	}
	return h
}
