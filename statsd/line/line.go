package line

// Kind is the kind of a line.
type Kind uint8

// The kinds of lines.
const (
	KindBlank Kind = iota // white space only: neither a line nor an error
	KindMetric
	KindEvent
	KindServiceCheck
)

// Type is the type of a sample.
type Type uint8

// The types of samples.
const (
	Counter      Type = iota // c
	Gauge                    // g
	Timer                    // ms
	Histogram                // h
	Distribution             // d
	Set                      // s

	Types = iota
)

// String returns the type as written in lines.
func (t Type) String() string { return [Types]string{"c", "g", "ms", "h", "d", "s"}[t] }

func parseType(b []byte) (Type, bool) {
	switch len(b) {
	case 1:
		switch b[0] {
		case 'c':
			return Counter, true
		case 'g':
			return Gauge, true
		case 'h':
			return Histogram, true
		case 'd':
			return Distribution, true
		case 's':
			return Set, true
		}
	case 2:
		if b[0] == 'm' && b[1] == 's' {
			return Timer, true
		}
	}
	return 0, false
}

// Sample is one "value|type" of a line with its sample rate.
type Sample struct {
	Type Type
	Rate float64 // 1 if not given; 1e-6..1
	Text []byte  // the value as received; the member of a set

	// Values are Line.Values[From:To]. Empty for a set, and before Numbers.
	From, To int
}

// Value is one number of a sample.
type Value struct {
	Number float64 // finite; never negative zero
	Signed bool    // written with a sign; relative for a gauge
}

// Tag is a key and its value. A tag without a value has an empty one.
type Tag struct{ Key, Value []byte }

// Line holds the parts of one line. The slices point into the parsed text or
// into memory of the Line; the next use overwrites both. The zero value is
// ready to use. A Line is not safe for concurrent use.
type Line struct {
	Kind Kind
	Text []byte // the line without line end and surrounding white space

	// Set by Split, for a metric.
	Section   []byte   // text before the colon: the name and possibly tags
	Samples   []Sample // at least one if Fields is OK
	TagFields [][]byte // text of the tag options, without the first '#'
	Container []byte   // text of the last container option, if configured
	Time      int64    // unix seconds of the last T option; 0 if there is none
	Unknown   int      // unknown options
	Fields    Reason   // reason of invalid fields; see Identify

	// Set by Identify.
	Name      []byte // without tags, control characters, line separators and trailing dots; not empty
	Tags      []Tag  // in byte order of their different keys
	TagErrors int    // malformed tags, which are ignored

	// SignedCounters allows negative counters. The caller sets it before
	// Numbers.
	SignedCounters bool

	// Set by Numbers.
	Values []Value

	// At is the offset in Text where parsing stopped, if there is a reason.
	At int

	fieldsAt int
	buf      []byte
}

// reset empties l but keeps its memory.
func (l *Line) reset(text []byte) {
	l.Kind = KindBlank
	l.Text = text
	l.Section = nil
	l.Samples = l.Samples[:0]
	l.TagFields = l.TagFields[:0]
	l.Container = nil
	l.Time = 0
	l.Unknown = 0
	l.Fields = OK
	l.Name = nil
	l.Tags = l.Tags[:0]
	l.TagErrors = 0
	l.SignedCounters = false
	l.Values = l.Values[:0]
	l.At = 0
}

func (l *Line) stop(at int, r Reason) Reason {
	l.At = at
	return r
}
