package remotewrite

import (
	"bytes"
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

// family is what the series of a family have in common.
type family struct {
	metric label // without a suffix
	meta   metadata
}

// namer makes the names and labels of series as in the exposition formats. One
// goroutine uses it.
type namer struct {
	st       *store.Store
	rules    *naming.Rules
	prefix   string
	external []label // of every series that has no label of the name itself
	seed     maphash.Seed
	families sinkqueue.Families[family]

	metric label // of the series, without a suffix
	meta   metadata
	room   []byte
	labels []label
	shape  []*store.Name // names of the tags that labels begin with, if it has just these
	taken  [][]byte      // label names
	full   []byte
	le     []byte
	named  []byte // the metric name with a suffix
	text   []byte // value of the label with the name of the stat
	order  []int  // of the labels of the series before by name, and those names
	names  [][]byte
	place  []int // in sorted, of each label and the metric name; empty unless sorted has just these
	sorted []label
}

// statLabel tells stats apart that share a metric name and labels.
const statLabel = "stat_name"

func newNamer(st *store.Store, prefix string, external []tags.Tag) *namer {
	n := &namer{st: st, rules: st.Naming(), prefix: prefix, seed: maphash.MakeSeed()}
	for _, t := range external {
		value := t.Value
		if value == "" {
			value = "true"
		}
		n.external = append(n.external, n.label(n.rules.AppendLabel(nil, t.Name), bytes.ToValidUTF8([]byte(value), []byte("\ufffd")), true))
	}
	return n
}

// read makes the series of the stat under c current. It returns false if nothing is
// left of its name.
func (n *namer) read(c *store.Cursor, k store.Kind) bool {
	f, sp := c.Family(), c.Series()
	if f != nil && n.prefix == "" && sp == nil {
		v, known := n.families.Of(f, k)
		if !known {
			v.metric, v.meta = n.label(nameLabel, n.name(f, k), false), n.describe(c, k)
		}
		n.metric, n.meta = v.metric, v.meta
	} else if n.meta = n.describe(c, k); !n.compose(c, k, f, sp) {
		return false
	}
	if len(n.metric.value) == 0 {
		return false
	}
	labels, valid := c.Labels(), c.Plain()
	if valid && sp == nil && n.sameTags(labels) {
		for i, l := range labels {
			n.labels[i].value, n.labels[i].hash = l.Value, maphash.Bytes(n.seed, l.Value)
		}
		return true
	}
	n.labels, n.taken, n.shape, n.place = n.labels[:0], n.taken[:0], n.shape[:0], n.place[:0]
	for _, l := range labels {
		value := l.Value
		if len(value) == 0 {
			if !c.Network() {
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
		n.shape = append(n.shape, l.Name)
	}
	if sp != nil && sp.Merged {
		n.text = bytes.ToValidUTF8(c.AppendName(n.text[:0]), []byte("\ufffd"))
		n.labels = append(n.labels, n.label(naming.DistinctLabel([]byte(statLabel), n.taken), n.text, false))
		n.shape = append(n.shape, nil)
	}
	for _, x := range n.external {
		if !slices.ContainsFunc(n.taken, func(t []byte) bool { return bytes.Equal(t, x.name) }) {
			n.labels = append(n.labels, x)
		}
	}
	return true
}

// sameTags reports whether the series before has tags of the same names, and only the
// values of its labels differ.
func (n *namer) sameTags(labels []store.Label) bool {
	if len(labels) != len(n.shape) {
		return false
	}
	for i := range labels {
		if labels[i].Name != n.shape[i] || len(labels[i].Value) == 0 {
			return false
		}
	}
	return true
}

// name returns the metric name of a family, empty if nothing is left of it.
func (n *namer) name(f *store.Name, k store.Kind) []byte {
	return f.Derived(naming.SlotMetric+int(k), func(f *store.Name) []byte {
		m, _ := n.rules.AppendMetric(nil, f.String(), f.Network(), k == store.KindCounter)
		return m
	})
}

// describe returns the metadata of the stat under c.
func (n *namer) describe(c *store.Cursor, k store.Kind) metadata {
	d := n.st.DescriptionOf(c)
	return metadata{kindType(k, d), d.Help, d.Unit}
}

// compose makes the metric name of the stat under c: the prefix, the name of its family
// or that for its full name, and its suffix. It returns false if nothing is left of it.
func (n *namer) compose(c *store.Cursor, k store.Kind, f *store.Name, sp *store.Series) bool {
	name := n.room[:0]
	if n.prefix != "" {
		name = append(append(name, n.prefix...), '_')
	}
	at := len(name)
	if f != nil {
		name = append(name, n.name(f, k)...)
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
	if len(n.place) > 0 && suffix == "" && le == "" {
		for i, at := range n.place {
			from := &n.metric
			if i < len(n.labels) {
				from = &n.labels[i]
			}
			n.sorted[at].value, n.sorted[at].hash = from.value, from.hash
		}
		return n.sorted
	}
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
	n.sorted, n.place = n.sorted[:0], n.place[:0]
	for _, i := range n.order {
		n.sorted = append(n.sorted, labels[i])
	}
	if suffix == "" && le == "" {
		n.place = append(n.place, n.order...)
		for at, i := range n.order {
			n.place[i] = at
		}
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

// lane returns which of a number of lanes the current series belongs to, with all
// series of its histogram.
func (n *namer) lane(lanes int) int {
	if lanes == 1 {
		return 0
	}
	h := n.metric.hash
	for i := range n.labels {
		h = h*31 + n.labels[i].hash
	}
	return int(h >> 32 % uint64(lanes))
}
