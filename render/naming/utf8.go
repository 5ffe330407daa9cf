package naming

import "unicode/utf8"

// AppendMetricUTF8 appends the metric name for a tag-extracted name in a
// format that allows any UTF-8: a name from network input as received. The
// program's own names, names with invalid UTF-8 or control characters, and all
// names under NetworkRunes are mapped as by [Rules.AppendMetric]. It does not
// keep name.
//
// Names that AppendMetric distinguishes differ here too.
func (r *Rules) AppendMetricUTF8(dst, name []byte, network, counter bool) ([]byte, bool) {
	if !network || r.NetworkRunes || !printable(name) {
		return r.AppendMetricBytes(dst, name, network, counter)
	}
	at := len(dst)
	return r.endNetwork(append(append(dst, r.NetworkPrefix...), name...), at, counter), true
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

// AppendLabelUTF8 appends the label name for a tag name in a format that allows
// any UTF-8, with the exceptions of [Rules.AppendMetricUTF8]. Label names that
// the formats reserve get the prefix "exported_".
func (r *Rules) AppendLabelUTF8(dst []byte, name string, network bool) []byte {
	if !network || r.NetworkRunes || name == "" || !printable([]byte(name)) {
		return r.AppendLabel(dst, name)
	}
	return AppendUnreserved(dst, name)
}
