package remotewrite

import (
	"bytes"
	"hash/maphash"
	"slices"
	"unicode/utf8"

	"github.com/statsd-admin/statsd-admin/render/naming"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// label is a label of a series. It shares memory with the names of the store.
type label struct{ name, value []byte }

// namer makes the names and labels of series as in the exposition formats. One
// goroutine uses it.
type namer struct {
	rules    *naming.Rules
	prefix   string
	external []label // of every series that has no label of the name itself
	seed     maphash.Seed

	metric []byte // of the series, without a suffix
	labels []label
	taken  [][]byte // label names
	full   []byte
	le     []byte
	named  []byte // the metric name with a suffix
	text   []byte // value of the label with the name of the stat
	sorted []label
}

// statLabel tells stats apart that share a metric name and labels.
const statLabel = "stat_name"

func newNamer(st *store.Store, prefix string, external []tags.Tag) *namer {
	n := &namer{rules: st.Naming(), prefix: prefix, seed: maphash.MakeSeed()}
	for _, t := range external {
		value := t.Value
		if value == "" {
			value = "true"
		}
		n.external = append(n.external, label{n.rules.AppendLabel(nil, t.Name), bytes.ToValidUTF8([]byte(value), []byte("\ufffd"))})
	}
	return n
}

// read makes the series of the stat under c current. It returns false if nothing is
// left of its name.
func (n *namer) read(c *store.Cursor, k store.Kind) bool {
	f, network, sp := c.Family(), c.Network(), c.Series()
	n.metric = n.metric[:0]
	if n.prefix != "" {
		n.metric = append(append(n.metric, n.prefix...), '_')
	}
	at := len(n.metric)
	if f != nil {
		n.metric = append(n.metric, f.Derived(naming.SlotMetric+int(k), func(f *store.Name) []byte {
			m, _ := n.rules.AppendMetric(nil, f.String(), f.Network(), k == store.KindCounter)
			return m
		})...)
	} else {
		n.full = c.AppendName(n.full[:0])
		if m, ok := n.rules.AppendMetricBytes(n.metric, n.full, network, k == store.KindCounter); ok {
			n.metric = m
		}
	}
	if len(n.metric) == at {
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
		n.labels = append(n.labels, label{name, value})
	}
	if sp != nil {
		n.metric = append(n.metric, sp.Suffix...)
		if sp.Merged {
			n.text = bytes.ToValidUTF8(c.AppendName(n.text[:0]), []byte("\ufffd"))
			n.labels = append(n.labels, label{naming.DistinctLabel([]byte(statLabel), n.taken), n.text})
		}
	}
	for _, x := range n.external {
		if !slices.ContainsFunc(n.taken, func(t []byte) bool { return bytes.Equal(t, x.name) }) {
			n.labels = append(n.labels, x)
		}
	}
	return true
}

// nameLabel is the label that holds the metric name.
var nameLabel = []byte("__name__")

// all returns the labels of the current series in the order of their names, with a
// suffix of the metric name and, unless le is empty, the bound of a bucket. The result
// is valid until the next call.
func (n *namer) all(suffix, le string) []label {
	n.named = append(append(n.named[:0], n.metric...), suffix...)
	n.sorted = append(append(n.sorted[:0], label{nameLabel, n.named}), n.labels...)
	if le != "" {
		n.le = append(n.le[:0], le...)
		n.sorted = append(n.sorted, label{[]byte("le"), n.le})
	}
	// There are a few, and most are in order.
	for i := 1; i < len(n.sorted); i++ {
		for j := i; j > 0 && bytes.Compare(n.sorted[j].name, n.sorted[j-1].name) < 0; j-- {
			n.sorted[j], n.sorted[j-1] = n.sorted[j-1], n.sorted[j]
		}
	}
	return n.sorted
}

// lane returns which of a number of lanes the current series belongs to, with all
// series of its histogram.
func (n *namer) lane(lanes int) int {
	if lanes == 1 {
		return 0
	}
	n.named = append(n.named[:0], n.metric...)
	for _, l := range n.labels {
		n.named = append(append(n.named, 0), l.value...)
	}
	return int(maphash.Bytes(n.seed, n.named) % uint64(lanes))
}
