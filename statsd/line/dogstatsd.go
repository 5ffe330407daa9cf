package line

import (
	"bytes"
	"strconv"
	"strings"
)

var (
	eventPrefix = []byte("_e{")
	checkPrefix = []byte("_sc|")
)

// Event is a DogStatsD event.
type Event struct {
	Title, Text string   // may hold newlines; the title is not empty
	Time        int64    // unix seconds; 0 if not given
	Host        string   //
	Key         string   // aggregation key
	Priority    string   // normal or low
	Source      string   //
	Alert       string   // info, error, warning or success
	Tags        []string // key:value or key, as given, in byte order of the keys
	Unknown     int      // unknown fields
}

// ServiceCheck is the state of a service check.
type ServiceCheck struct {
	Name    string
	Status  int   // 0 OK, 1 warning, 2 critical, 3 unknown
	Time    int64 // unix seconds; 0 if not given
	Host    string
	Message string
	Tags    []string
	Unknown int
}

// ParseEvent parses l, which must be of kind KindEvent. It returns OK or
// BadEvent. The result shares no memory with l.
func (p *Parser) ParseEvent(l *Line) (Event, Reason) {
	b := l.Text[len(eventPrefix):]
	titleLen, b, ok := length(b, ',')
	if !ok {
		return Event{}, l.stop(len(l.Text)-len(b), BadEvent)
	}
	textLen, b, ok := length(b, '}')
	if !ok || len(b) == 0 || b[0] != ':' {
		return Event{}, l.stop(len(l.Text)-len(b), BadEvent)
	}
	b = b[1:]
	if titleLen == 0 || len(b) <= titleLen || b[titleLen] != '|' {
		return Event{}, l.stop(len(l.Text)-len(b), BadEvent)
	}
	title, b := b[:titleLen], b[titleLen+1:]
	if len(b) < textLen || len(b) > textLen && b[textLen] != '|' {
		return Event{}, l.stop(len(l.Text)-len(b), BadEvent)
	}
	n := Event{
		Title:    unescape(title),
		Text:     unescape(b[:textLen]),
		Priority: "normal",
		Alert:    "info",
	}
	tags := p.eventTags(l)
	for f := range bytes.SplitSeq(after(b, textLen), []byte{'|'}) {
		key, value, _ := strings.Cut(string(f), ":")
		switch {
		case len(f) == 0:
		case f[0] == '#':
			tags.addField(f[1:])
		case key == "d":
			unixTime(&n.Time, []byte(value))
		case key == "h":
			n.Host = cleanString(value)
		case key == "k":
			n.Key = cleanString(value)
		case key == "p":
			oneOf(&n.Priority, value, "normal", "low")
		case key == "s":
			n.Source = cleanString(value)
		case key == "t":
			oneOf(&n.Alert, value, "info", "error", "warning", "success")
		case key == "c", key == "e", key == "card":
		default:
			n.Unknown++
		}
	}
	n.Tags = l.tagStrings()
	return n, OK
}

// ParseServiceCheck parses l, which must be of kind KindServiceCheck. It
// returns OK or BadServiceCheck. The result shares no memory with l.
func (p *Parser) ParseServiceCheck(l *Line) (ServiceCheck, Reason) {
	name, rest, ok := bytes.Cut(l.Text[len(checkPrefix):], []byte{'|'})
	if !ok || len(name) == 0 {
		return ServiceCheck{}, l.stop(len(checkPrefix), BadServiceCheck)
	}
	status, rest, _ := bytes.Cut(rest, []byte{'|'})
	if len(status) != 1 || status[0] < '0' || status[0] > '3' {
		return ServiceCheck{}, l.stop(len(checkPrefix)+len(name)+1, BadServiceCheck)
	}
	s := ServiceCheck{Name: cleanString(string(name)), Status: int(status[0] - '0')}
	tags := p.eventTags(l)
	for f := range bytes.SplitSeq(rest, []byte{'|'}) {
		key, value, _ := strings.Cut(string(f), ":")
		switch {
		case len(f) == 0:
		case f[0] == '#':
			tags.addField(f[1:])
		case key == "d":
			unixTime(&s.Time, []byte(value))
		case key == "h":
			s.Host = cleanString(value)
		case key == "m":
			s.Message = strings.ReplaceAll(unescape([]byte(value)), `m\:`, "m:")
		case key == "c", key == "e", key == "card":
		default:
			s.Unknown++
		}
	}
	s.Tags = l.tagStrings()
	return s, OK
}

// IdentifyCheck gives l the name and tags of the service check just parsed from
// it, as for a metric. It returns a reason if they are not valid for a metric.
func (p *Parser) IdentifyCheck(l *Line, s *ServiceCheck) Reason {
	if r := p.checkName(l, []byte(s.Name)); r != OK {
		return r
	}
	return p.checkTags(l)
}

// eventTags returns an empty set of tags. Tags beyond the limit are dropped,
// since an event creates no series.
func (p *Parser) eventTags(l *Line) *tagSet {
	l.buf = l.buf[:0]
	l.Tags = l.Tags[:0]
	l.TagErrors = 0
	return &tagSet{l: l, cfg: &p.cfg}
}

func (l *Line) tagStrings() []string {
	sortTags(l.Tags)
	var out []string
	for _, t := range l.Tags {
		s := string(t.Key)
		if len(t.Value) > 0 {
			s += ":" + string(t.Value)
		}
		out = append(out, s)
	}
	return out
}

// length reads decimal digits up to end and returns the rest.
func length(b []byte, end byte) (n int, rest []byte, ok bool) {
	i := 0
	for i < len(b) && b[i]-'0' <= 9 {
		if n < 1<<30 { // already longer than any line
			n = n*10 + int(b[i]-'0')
		}
		i++
	}
	if i == 0 || i == len(b) || b[i] != end {
		return 0, b[i:], false
	}
	return n, b[i+1:], true
}

// after returns the fields of b after the first n bytes and a separator.
func after(b []byte, n int) []byte {
	if len(b) == n {
		return nil
	}
	return b[n+1:]
}

// unescape returns b with each \n, two characters, replaced by a newline.
func unescape(b []byte) string { return strings.ReplaceAll(string(b), `\n`, "\n") }

func cleanString(s string) string { return string(clean([]byte(s))) }

// oneOf sets *dst to s if s is an allowed word.
func oneOf(dst *string, s string, allowed ...string) {
	for _, a := range allowed {
		if s == a {
			*dst = a
		}
	}
}

// unixTime sets *dst to the unix time that b holds. It reports whether b is one.
func unixTime(dst *int64, b []byte) bool {
	n, err := strconv.ParseUint(text(b), 10, 62)
	if err != nil {
		return false
	}
	*dst = int64(n)
	return true
}
