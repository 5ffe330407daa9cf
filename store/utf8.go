package store

import (
	"strings"
	"unicode/utf8"
)

// AppendMetricUTF8 appends the metric name for a tag-extracted name where any
// UTF-8 is allowed: one from network input as it was received. Names of the
// program's own stats, those that are no UTF-8 or have control characters, and
// all with NetworkRunes are as [Naming.AppendMetric] has them. It does not keep
// name.
//
// Names that AppendMetric tells apart differ here too.
func (n *Naming) AppendMetricUTF8(dst, name []byte, network bool, k Kind) ([]byte, bool) {
	if !network || n.NetworkRunes || !printable(name) {
		return n.AppendMetricBytes(dst, name, network, k)
	}
	at := len(dst)
	dst = append(append(dst, n.NetworkPrefix...), name...)
	if len(dst) == at {
		dst = append(dst, '_')
	}
	if k == KindCounter && n.NetworkTotal {
		dst = append(dst, "_total"...)
	}
	return dst, true
}

// printable reports whether name is UTF-8 without control characters.
func printable(name []byte) bool {
	for _, c := range name {
		if c < 0x20 || c == 0x7f {
			return false
		}
	}
	return utf8.Valid(name)
}

// AppendLabelUTF8 appends the label name for the name of a tag where any UTF-8
// is allowed, with the exceptions of [Naming.AppendMetricUTF8]. What the formats
// reserve gets "exported_" in front.
func (n *Naming) AppendLabelUTF8(dst []byte, name string, network bool) []byte {
	if !network || n.NetworkRunes || name == "" || !printable([]byte(name)) {
		return n.AppendLabel(dst, name)
	}
	return AppendUnreserved(dst, name)
}

// AppendUnreserved appends a label name, with "exported_" in front if the
// formats reserve it.
func AppendUnreserved(dst []byte, label string) []byte {
	if label == "le" || label == "quantile" || strings.HasPrefix(label, "__") {
		dst = append(dst, exported...)
	}
	return append(dst, label...)
}
