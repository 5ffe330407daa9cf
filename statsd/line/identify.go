package line

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/statsd-admin/statsd-admin/internal/oneline"
)

// Identify checks and cleans the name and the tags of l. Split must have
// returned OK for a metric. If the fields are invalid, Identify returns that
// reason unless the name is invalid.
func (p *Parser) Identify(l *Line) Reason {
	l.buf = l.buf[:0]
	l.Tags = l.Tags[:0]
	l.TagErrors = 0
	tags := tagSet{l: l, cfg: &p.cfg}
	name := p.nameTags(l, &tags)
	nameTags := tags.valid
	if r := p.checkName(l, name); r != OK {
		return r
	}
	if l.Fields != OK {
		return l.stop(l.fieldsAt, l.Fields)
	}
	for _, f := range l.TagFields {
		tags.addField(f)
	}
	if nameTags > 0 && tags.valid > nameTags {
		return l.stop(len(l.Section), MixedTagStyles)
	}
	if l.Container != nil {
		tags.add(containerKey, p.containerID(l.Container))
	}
	if tags.overflow {
		return l.stop(len(l.Section), TooManyTags)
	}
	sortTags(l.Tags)
	return p.checkTags(l)
}

// checkName sets the name of l to name, which is clean.
func (p *Parser) checkName(l *Line, name []byte) Reason {
	if !p.cfg.Exporter {
		name = bytes.TrimRight(name, ".")
	}
	l.Name = name
	if len(name) == 0 {
		return l.stop(0, EmptyName)
	}
	if len(name) > p.cfg.NameBytes {
		return l.stop(min(p.cfg.NameBytes, len(l.Text)), NameTooLong)
	}
	if bytes.Count(name, []byte{'.'})+1 > p.cfg.Segments {
		return l.stop(0, TooManySegments)
	}
	return OK
}

func (p *Parser) checkTags(l *Line) Reason {
	for _, t := range l.Tags {
		if len(t.Key) > p.cfg.TagKeyBytes || len(t.Value) > p.cfg.TagValueBytes {
			return l.stop(len(l.Section), TagTooLong)
		}
	}
	return OK
}

func sortTags(tags []Tag) {
	slices.SortFunc(tags, func(a, b Tag) int { return bytes.Compare(a.Key, b.Key) })
}

// nameTags extracts the tags from the name section and returns the clean name.
func (p *Parser) nameTags(l *Line, tags *tagSet) []byte {
	s := l.Section
	if p.on(SignalFX) {
		open, shut := bytes.IndexByte(s, '['), bytes.IndexByte(s, ']')
		if open >= 0 && open < shut {
			tags.addPairs(s[open+1:shut], ',')
			from := len(l.buf)
			l.buf = append(append(l.buf, s[:open]...), s[shut+1:]...)
			return clean(l.buf[from:])
		}
		if open >= 0 || shut >= 0 {
			return l.clean(s)
		}
	}
	for i, c := range s {
		switch {
		case c == '#' && p.on(Librato), c == ',' && p.on(Influx):
			tags.addPairs(s[i+1:], ',')
		case c == ';' && p.on(Graphite):
			tags.addPairs(s[i+1:], ';')
		default:
			continue
		}
		return l.clean(s[:i])
	}
	return l.clean(s)
}

var containerKey = []byte("container_id")

func (p *Parser) containerID(b []byte) []byte {
	if p.cfg.Exporter {
		return b
	}
	for _, prefix := range []string{"ci-", "cid-"} {
		if bytes.HasPrefix(b, []byte(prefix)) {
			return b[len(prefix):]
		}
	}
	return b
}

// tagSet collects the tags of a line. The last of equal keys wins.
type tagSet struct {
	l        *Line
	cfg      *Config
	valid    int // well-formed tags so far, duplicates included
	overflow bool
}

// addPairs adds "key=value" pairs. Pairs without a key or a value are tag
// errors.
func (t *tagSet) addPairs(b []byte, sep byte) {
	for len(b) > 0 {
		pair := b
		if i := bytes.IndexByte(b, sep); i >= 0 {
			pair, b = b[:i], b[i+1:]
			if len(b) == 0 {
				t.l.TagErrors++ // nothing after the last separator
			}
		} else {
			b = nil
		}
		eq := bytes.IndexByte(pair, '=')
		if eq <= 0 || eq == len(pair)-1 {
			t.l.TagErrors++
			continue
		}
		t.valid++
		t.put(pair[:eq], pair[eq+1:])
	}
}

// addField adds the tags of a tag option, "key:value" or "key".
func (t *tagSet) addField(b []byte) {
	for len(b) > 0 {
		tag := b
		if i := bytes.IndexByte(b, ','); i >= 0 {
			tag, b = b[:i], b[i+1:]
		} else {
			b = nil
		}
		if len(tag) > 0 && tag[0] == '#' {
			tag = tag[1:]
		}
		if len(tag) == 0 && !t.cfg.Exporter {
			continue
		}
		key, value, _ := bytes.Cut(tag, []byte{':'})
		if len(key) == 0 || len(value) == 0 && t.cfg.Exporter {
			t.l.TagErrors++
			continue
		}
		t.valid++
		t.put(key, value)
	}
}

// add adds a tag that must have a value.
func (t *tagSet) add(key, value []byte) {
	if len(value) == 0 {
		t.l.TagErrors++
		return
	}
	t.put(key, value)
}

func (t *tagSet) put(key, value []byte) {
	if t.overflow {
		return // the line is rejected anyway
	}
	key, value = t.l.clean(key), t.l.clean(value)
	if t.cfg.AppendKey != nil {
		from := len(t.l.buf)
		t.l.buf = t.cfg.AppendKey(t.l.buf, key)
		key = t.l.buf[from:len(t.l.buf):len(t.l.buf)]
	}
	for i := range t.l.Tags {
		if bytes.Equal(t.l.Tags[i].Key, key) {
			t.l.Tags[i].Value = value
			return
		}
	}
	if len(t.l.Tags) >= t.cfg.Tags {
		t.overflow = true
		return
	}
	t.l.Tags = append(t.l.Tags, Tag{key, value})
}

// clean returns b with its control characters and line separators replaced, or b
// itself if it has none.
func (l *Line) clean(b []byte) []byte {
	if fit(b) {
		return b
	}
	from := len(l.buf)
	l.buf = append(l.buf, b...)
	return clean(l.buf[from:len(l.buf):len(l.buf)])
}

// clean puts "_" in place of each control character and line separator of b, in
// the memory of b.
func clean(b []byte) []byte {
	to := 0
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if oneline.Breaks(r) {
			b[to] = '_'
			to++
		} else {
			to += copy(b[to:], b[i:i+n])
		}
		i += n
	}
	return b[:to]
}

// fit reports whether clean would leave b as it is.
func fit(b []byte) bool {
	for i := 0; i < len(b); i++ {
		if b[i]-' ' < 0x7f-' ' {
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		if oneline.Breaks(r) {
			return false
		}
		i += n - 1
	}
	return true
}
