package naming

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"unsafe"
)

// Rules map tag-extracted names and tag names to names in the exposition
// formats. The zero value prefixes the program's own names with only an
// underscore.
type Rules struct {
	// Product and an underscore precede the names of the program's own stats.
	// A store sets it to its own product name.
	Product string
	// Namespaces are leading segments, separated by dots, that are dropped from
	// the names of the program's own stats, which then get no product prefix.
	Namespaces []string
	// Bare are leading segments, separated by dots, of names of the program's
	// own stats that get no product prefix, such as "process".
	Bare []string
	// NetworkPrefix precedes names from network input. Default "".
	NetworkPrefix string
	// NetworkTotal appends "_total" to counters from network input whose names do not
	// end in it.
	NetworkTotal bool
	// NetworkRunes replaces characters, not bytes, in names from network
	// input: a character of several bytes becomes one underscore, and so does
	// a run of hyphens. statsd_exporter does the same.
	NetworkRunes bool
	// NetworkSeconds shows timers from network input, which are kept in
	// milliseconds, in seconds.
	NetworkSeconds bool
	// Unique gives each family its own metric name. Of families whose names
	// differ only in replaced bytes, the second gets its kind as a suffix and
	// the others a digest of their name as well. If false, such families share
	// a metric name, and stats with equal labels share a series.
	Unique bool
}

// AppendMetric appends the metric name for a tag-extracted name. It returns
// false, and appends nothing, if the name cannot be shown because nothing
// follows its namespace, or a digit does.
func (r *Rules) AppendMetric(dst []byte, name string, network, counter bool) ([]byte, bool) {
	at := len(dst)
	if network {
		dst = append(dst, r.NetworkPrefix...)
		if at == len(dst) && name != "" && digit(name[0]) {
			dst = append(dst, '_')
		}
		if r.NetworkRunes {
			dst = appendRunes(dst, name)
		} else {
			dst = appendAlphabet(dst, name)
		}
		return r.endNetwork(dst, at, counter), true
	}
	if rest, ok := below(name, r.Namespaces); ok {
		if rest == "" || digit(rest[0]) {
			return dst, false
		}
		return appendAlphabet(dst, rest), true
	}
	if _, ok := below(name, r.Bare); !ok {
		dst = appendAlphabet(dst, r.Product)
		dst = append(dst, '_')
	}
	return appendAlphabet(dst, name), true
}

// AppendMetricBytes is [Rules.AppendMetric] for a name held as bytes, which it
// does not keep.
func (r *Rules) AppendMetricBytes(dst, name []byte, network, counter bool) ([]byte, bool) {
	return r.AppendMetric(dst, unsafe.String(unsafe.SliceData(name), len(name)), network, counter)
}

// endNetwork completes the name of a network stat that begins at dst[at].
func (r *Rules) endNetwork(dst []byte, at int, counter bool) []byte {
	if len(dst) == at {
		dst = append(dst, '_')
	}
	if counter && r.NetworkTotal && !bytes.HasSuffix(dst[at:], []byte("_total")) {
		dst = append(dst, "_total"...)
	}
	return dst
}

// below returns what follows the first prefix of list that name begins with, and its
// dot.
func below(name string, list []string) (rest string, ok bool) {
	for _, prefix := range list {
		if rest, ok = strings.CutPrefix(name, prefix); ok && strings.HasPrefix(rest, ".") {
			return rest[1:], true
		}
	}
	return "", false
}

// AppendLabel appends the label name for a tag name. Label names that the
// formats reserve get the prefix "exported_".
func (r *Rules) AppendLabel(dst []byte, name string) []byte {
	at := len(dst)
	if name == "" || digit(name[0]) {
		dst = append(dst, '_')
	}
	dst = appendAlphabet(dst, name)
	return AppendUnreserved(dst[:at], string(dst[at:]))
}

// Slots of the derived names that the store keeps with a name, so that all writers of
// expositions share them.
const (
	SlotMetric    = 0 // metric name of a family; one slot for each kind of stat
	SlotLabel     = 4 // label name
	SlotLabelUTF8 = 5 // label name in a format that allows any UTF-8
	SlotAttribute = 6 // encoded key of an OpenTelemetry attribute
	SlotStatsD    = 7 // name in lines of StatsD
	SlotGraphite  = 8 // name in lines of Graphite
	Slots         = 9
)

// TextLabel is the label that holds the value of a text readout.
const TextLabel = "text_value"

const exported = "exported_"

// AppendUnreserved appends a label name, with the prefix "exported_" if the
// formats reserve it.
func AppendUnreserved(dst []byte, label string) []byte {
	if label == "le" || label == "quantile" || strings.HasPrefix(label, "__") {
		dst = append(dst, exported...)
	}
	return append(dst, label...)
}

// DistinctLabel returns the label name with as many prefixes "exported_" as
// make it differ from all names in taken.
func DistinctLabel(name []byte, taken [][]byte) []byte {
	for slices.ContainsFunc(taken, func(t []byte) bool { return bytes.Equal(t, name) }) {
		name = append([]byte(exported), name...)
	}
	return name
}

// appendAlphabet appends s with an underscore in place of every byte that
// metric names cannot contain.
func appendAlphabet(dst []byte, s string) []byte {
	at := len(dst)
	dst = append(dst, s...)
	b := dst[at:]
	for ; len(b) >= 8; b = b[8:] {
		binary.LittleEndian.PutUint64(b, alphabetWord(binary.LittleEndian.Uint64(b)))
	}
	for i, c := range b {
		b[i] = alphabet[c]
	}
	return dst
}

// alphabetWord is [alphabet] for eight bytes at once: additions to bytes below
// 0x80 carry into no neighbor, and set the top bit of those above a bound.
func alphabetWord(x uint64) uint64 {
	const each, top = 0x0101010101010101, 0x8080808080808080
	low := x &^ top
	lower := low | 0x20*each
	letters := (lower + (0x80-'a')*each) &^ (lower + (0x80-'z'-1)*each)
	digits := (low + (0x80-'0')*each) &^ (low + (0x80-'9'-1)*each)
	others := (^(letters | digits) | x) & top
	mask := others >> 7 * 0xff
	return x&^mask | '_'*each&mask
}

// alphabet maps each byte to its replacement in a metric name.
const alphabet = "________________________________________________0123456789______" +
	"_ABCDEFGHIJKLMNOPQRSTUVWXYZ______abcdefghijklmnopqrstuvwxyz_____" +
	"________________________________________________________________" +
	"________________________________________________________________"

// appendRunes is appendAlphabet by characters; see Rules.NetworkRunes.
func appendRunes(dst []byte, s string) []byte {
	last := rune(0)
	for _, r := range s {
		switch {
		case r < 0x80 && (digit(byte(r)) || r|0x20 >= 'a' && r|0x20 <= 'z'):
			dst = append(dst, byte(r))
		case r != '-' || last != '-':
			dst = append(dst, '_')
		}
		last = r
	}
	return dst
}

func digit(c byte) bool { return '0' <= c && c <= '9' }
