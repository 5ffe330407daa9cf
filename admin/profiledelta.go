package admin

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/gzip"

	"github.com/statsd-admin/statsd-admin/internal/protobuf"
)

// The fields of a profile in the format of go tool pprof.
const (
	fieldSample   = 2
	fieldMapping  = 3
	fieldLocation = 4
	fieldFunction = 5
	fieldString   = 6
	fieldTime     = 9
	fieldDuration = 10
)

var errProfile = errors.New("admin: malformed profile")

// deltaProfile returns the difference between two readings of a runtime profile,
// which are compressed, as is the result. Stacks without a change are left out.
func deltaProfile(before, after []byte) ([]byte, error) {
	old, err := readProfile(before)
	if err != nil {
		return nil, err
	}
	now, err := readProfile(after)
	if err != nil {
		return nil, err
	}
	for _, s := range old.samples {
		for i := range s.values {
			s.values[i] = -s.values[i]
		}
	}
	changes := make(map[string]*stackSample)
	var order []*stackSample
	for _, s := range slices.Concat(now.samples, old.samples) {
		sum := changes[s.key]
		if sum == nil {
			changes[s.key] = s
			order = append(order, s)
			continue
		}
		if len(sum.values) != len(s.values) {
			return nil, errProfile
		}
		for i, v := range s.values {
			sum.values[i] += v
		}
	}
	w := newProfileWriter(now)
	for _, s := range order {
		if slices.ContainsFunc(s.values, func(v int64) bool { return v != 0 }) {
			w.sample(s)
		}
	}
	w.out = protobuf.AppendInt(w.out, fieldDuration, now.time-old.time)
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	if _, err = zip.Write(w.out); err == nil {
		err = zip.Close()
	}
	return out.Bytes(), err
}

// stackProfile is a decoded profile. References are resolved.
type stackProfile struct {
	rest      []byte // encoded fields other than samples
	time      int64
	strings   []string
	mappings  map[uint64]uint64 // start by ID
	functions map[uint64]stackFunction
	locations map[uint64]*stackLocation
	samples   []*stackSample
}

type stackFunction struct {
	name, system, file string
	line               uint64
}

type stackLocation struct {
	key            string // equal for equal locations of two profiles
	start, address uint64 // start is that of the mapping
	lines          []stackLine
}

type stackLine struct {
	function     stackFunction
	line, column uint64
}

type stackSample struct {
	key    string // equal for equal stacks and labels of two profiles
	stack  []*stackLocation
	values []int64
	labels []stackLabel
}

type stackLabel struct {
	key, text, unit string
	number          uint64
}

// readProfile decodes a compressed profile.
func readProfile(data []byte) (*stackProfile, error) {
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if data, err = io.ReadAll(zip); err != nil {
		return nil, err
	}
	p := &stackProfile{
		mappings: make(map[uint64]uint64), functions: make(map[uint64]stackFunction), locations: make(map[uint64]*stackLocation),
	}
	var parts [fieldString][][]byte // references precede their tables
	for len(data) > 0 {
		f, next, err := protobuf.Next(data)
		if err != nil {
			return nil, err
		}
		if f.Number != fieldSample {
			p.rest = append(p.rest, data[:len(data)-len(next)]...)
		}
		data = next
		switch f.Number {
		case fieldSample, fieldMapping, fieldLocation, fieldFunction:
			parts[f.Number] = append(parts[f.Number], f.Bytes)
		case fieldString:
			p.strings = append(p.strings, string(f.Bytes))
		case fieldTime:
			p.time = int64(f.Value)
		}
	}
	for _, table := range []struct {
		field int
		read  func([]byte) error
	}{{fieldMapping, p.readMapping}, {fieldFunction, p.readFunction}, {fieldLocation, p.readLocation}, {fieldSample, p.readSample}} {
		for _, msg := range parts[table.field] {
			if err := table.read(msg); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

// readNumbers returns the numbers in the fields 1 to 5 of a message, and calls each
// for all its fields.
func readNumbers(msg []byte, each func(protobuf.Field) error) (n [6]uint64, err error) {
	for len(msg) > 0 {
		var f protobuf.Field
		if f, msg, err = protobuf.Next(msg); err != nil {
			return n, err
		}
		if f.Number < len(n) {
			n[f.Number] = f.Value
		}
		if each != nil {
			if err = each(f); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// texts looks up strings.
func (p *stackProfile) texts(index ...uint64) ([]string, error) {
	out := make([]string, len(index))
	for i, n := range index {
		if n >= uint64(len(p.strings)) {
			return nil, errProfile
		}
		out[i] = p.strings[n]
	}
	return out, nil
}

func (p *stackProfile) readMapping(msg []byte) error {
	n, err := readNumbers(msg, nil)
	p.mappings[n[1]] = n[2]
	return err
}

func (p *stackProfile) readFunction(msg []byte) error {
	n, err := readNumbers(msg, nil)
	if err != nil {
		return err
	}
	t, err := p.texts(n[2], n[3], n[4])
	if err == nil {
		p.functions[n[1]] = stackFunction{t[0], t[1], t[2], n[5]}
	}
	return err
}

func (p *stackProfile) readLocation(msg []byte) error {
	l := new(stackLocation)
	n, err := readNumbers(msg, func(f protobuf.Field) error {
		if f.Number != 4 {
			return nil
		}
		n, err := readNumbers(f.Bytes, nil)
		l.lines = append(l.lines, stackLine{p.functions[n[1]], n[2], n[3]})
		return err
	})
	l.start, l.address = p.mappings[n[2]], n[3]
	l.key = fmt.Sprintf("%x %x %#v", l.start, l.address, l.lines)
	p.locations[n[1]] = l
	return err
}

func (p *stackProfile) readSample(msg []byte) error {
	s := new(stackSample)
	_, err := readNumbers(msg, func(f protobuf.Field) error {
		switch f.Number {
		case 1:
			return eachNumber(f, func(v uint64) error {
				l := p.locations[v]
				if l == nil {
					return errProfile
				}
				s.stack = append(s.stack, l)
				return nil
			})
		case 2:
			return eachNumber(f, func(v uint64) error {
				s.values = append(s.values, int64(v))
				return nil
			})
		case 3:
			n, err := readNumbers(f.Bytes, nil)
			if err != nil {
				return err
			}
			t, err := p.texts(n[1], n[2], n[4])
			if err == nil {
				s.labels = append(s.labels, stackLabel{t[0], t[1], t[2], n[3]})
			}
			return err
		}
		return nil
	})
	key := fmt.Appendf(nil, "%#v", s.labels)
	for _, l := range s.stack {
		key = append(append(key, '\n'), l.key...)
	}
	s.key = string(key)
	p.samples = append(p.samples, s)
	return err
}

// eachNumber calls each for the numbers of a repeated field, packed or not.
func eachNumber(f protobuf.Field, each func(uint64) error) error {
	if f.Type != protobuf.Bytes {
		return each(f.Value)
	}
	for b := f.Bytes; len(b) > 0; {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return errProfile
		}
		b = b[n:]
		if err := each(v); err != nil {
			return err
		}
	}
	return nil
}

// profileWriter adds samples to a profile, with their locations and functions.
type profileWriter struct {
	out       []byte
	strings   map[string]uint64
	mappings  map[uint64]uint64 // ID by start
	functions map[stackFunction]uint64
	locations map[string]uint64 // ID by key

	function, location uint64 // the highest IDs
}

func newProfileWriter(p *stackProfile) *profileWriter {
	w := &profileWriter{
		out: p.rest, strings: make(map[string]uint64), mappings: make(map[uint64]uint64),
		functions: make(map[stackFunction]uint64), locations: make(map[string]uint64),
	}
	for i, text := range p.strings {
		w.strings[text] = uint64(i)
	}
	for id, start := range p.mappings {
		w.mappings[start] = id
	}
	for id, f := range p.functions {
		w.functions[f], w.function = id, max(w.function, id)
	}
	for id, l := range p.locations {
		w.locations[l.key], w.location = id, max(w.location, id)
	}
	return w
}

func (w *profileWriter) sample(s *stackSample) {
	var b []byte
	for _, l := range s.stack {
		b = protobuf.AppendUint(b, 1, w.locationID(l))
	}
	for _, v := range s.values {
		b = protobuf.AppendInt(b, 2, v)
	}
	for _, l := range s.labels {
		b = protobuf.AppendBytes(b, 3, encodeNumbers(w.stringID(l.key), w.stringID(l.text), l.number, w.stringID(l.unit)))
	}
	w.out = protobuf.AppendBytes(w.out, fieldSample, b)
}

func (w *profileWriter) stringID(text string) uint64 {
	id, ok := w.strings[text]
	if !ok {
		id = uint64(len(w.strings))
		w.strings[text] = id
		w.out = protobuf.AppendBytes(w.out, fieldString, text)
	}
	return id
}

func (w *profileWriter) functionID(f stackFunction) uint64 {
	id, ok := w.functions[f]
	if !ok {
		w.function++
		id = w.function
		w.functions[f] = id
		w.out = protobuf.AppendBytes(w.out, fieldFunction, encodeNumbers(id, w.stringID(f.name), w.stringID(f.system), w.stringID(f.file), f.line))
	}
	return id
}

func (w *profileWriter) locationID(l *stackLocation) uint64 {
	id, ok := w.locations[l.key]
	if !ok {
		w.location++
		id = w.location
		w.locations[l.key] = id
		b := encodeNumbers(id, w.mappings[l.start], l.address)
		for _, line := range l.lines {
			b = protobuf.AppendBytes(b, 4, encodeNumbers(w.functionID(line.function), line.line, line.column))
		}
		w.out = protobuf.AppendBytes(w.out, fieldLocation, b)
	}
	return id
}

// encodeNumbers encodes a message whose fields 1, 2 and so on are numbers.
func encodeNumbers(numbers ...uint64) (b []byte) {
	for i, n := range numbers {
		if n != 0 {
			b = protobuf.AppendUint(b, i+1, n)
		}
	}
	return b
}
