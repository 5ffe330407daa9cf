package top

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// maxEvent is the number of bytes that an event may have.
const maxEvent = 8 << 20

// event is an event of /stats/stream.
type event struct {
	kind     string // reset, delta or error
	Millis   int64  `json:"t"`
	Reason   string `json:"reason"`
	Interval int64  `json:"interval_ms"`
	More     bool   `json:"more"`
	New      []entry
	Rows     []entry
	Gone     []json.Number
}

// entry is an element of the lists of an event, whose first element is the id.
type entry []any

func (e entry) id() uint64 {
	n, _ := strconv.ParseUint(e.text(0), 10, 64)
	return n
}

// text returns element i as it was sent, "" if it is not there.
func (e entry) text(i int) string {
	if i >= len(e) {
		return ""
	}
	switch x := e[i].(type) {
	case string:
		return x
	case json.Number:
		return x.String()
	}
	return ""
}

func (e entry) number(i int) float64 {
	x, _ := strconv.ParseFloat(e.text(i), 64)
	return x
}

// quantiles returns the quantiles of a histogram's row.
func (e entry) quantiles() (q [3]float64, ok bool) {
	if len(e) < 4 {
		return q, false
	}
	list, _ := e[3].([]any)
	for i := range q {
		q[i] = entry(list).number(i)
	}
	return q, len(list) == len(q)
}

// reader reads events.
type reader struct {
	in   *bufio.Reader
	line []byte
}

func newReader(r io.Reader) *reader { return &reader{in: bufio.NewReaderSize(r, 64<<10)} }

// next returns the next event that is known.
func (r *reader) next() (*event, error) {
	kind := ""
	for {
		line, err := r.readLine()
		if err != nil {
			return nil, err
		}
		field, value, _ := strings.Cut(line, ": ")
		switch {
		case line == "":
			kind = ""
		case field == "event":
			kind = value
		case field == "data" && (kind == "reset" || kind == "delta" || kind == "error"):
			d := json.NewDecoder(strings.NewReader(value))
			d.UseNumber()
			e := event{kind: kind}
			if err := d.Decode(&e); err != nil {
				return nil, fmt.Errorf("malformed event: %w", err)
			}
			return &e, nil
		}
	}
}

func (r *reader) readLine() (string, error) {
	r.line = r.line[:0]
	for {
		part, err := r.in.ReadSlice('\n')
		r.line = append(r.line, part...)
		switch {
		case len(r.line) > maxEvent:
			return "", fmt.Errorf("an event has more than %d bytes", maxEvent)
		case err == nil:
			return string(r.line[:len(r.line)-1]), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return "", err
		}
	}
}
