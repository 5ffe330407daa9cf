package deltastream

import (
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/jsontext"
	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/store"
)

// partBytes is the size from which an event is sent in parts.
const partBytes = 32 << 10

// exact is the first number from which on neighbors are the same to JavaScript.
const exact = 1 << 53

// eventID is the id of an event.
type eventID struct{ epoch, seq uint64 }

// event writes one event of type "delta", in parts if it is long. Only the last
// part has an id, so that a client never resumes from the middle.
type event struct {
	w        Writer
	id       eventID
	at       time.Time
	interval time.Duration
	skipped  int
	sent     bool      // a part was sent
	until    time.Time // when all parts must have been sent; zero: there is time

	names, rows, ends []byte
	text              []byte
	buf               []byte
}

func (e *event) begin(id eventID, at time.Time, interval time.Duration) {
	e.id, e.at, e.interval, e.skipped, e.sent = id, at, interval, 0, false
	e.names, e.rows, e.ends = e.names[:0], e.rows[:0], e.ends[:0]
}

func (e *event) empty() bool { return len(e.names)+len(e.rows)+len(e.ends) == 0 }

// name adds the name of the stat under c, when it was created, 0 if that was before this
// process, and the unit of a histogram.
func (e *event) name(c *store.Cursor) {
	e.names = open(e.names, c.Ref())
	e.names = append(e.names, `,"`...)
	e.names = append(e.names, c.Kind().Word()...)
	e.names = append(e.names, `",`...)
	e.text = c.AppendName(e.text[:0])
	e.names = append(jsontext.AppendString(e.names, e.text), ',')
	created := c.Created()
	if created.IsZero() {
		created = time.UnixMilli(0)
	}
	e.names = strconv.AppendInt(e.names, created.UnixMilli(), 10)
	if c.Kind() == store.KindHistogram {
		e.names = append(e.names, `,"`...)
		e.names = append(e.names, c.Histogram().Layout().Unit().String()...)
		e.names = append(e.names, '"')
	}
	e.names = append(e.names, ']')
}

// open begins an element of a list with a reference.
func open(list []byte, ref uint64) []byte {
	if len(list) > 0 {
		list = append(list, ',')
	}
	list = append(list, '[')
	return strconv.AppendUint(list, ref, 10)
}

// row adds the value of the stat under c.
func (e *event) row(c *store.Cursor, delta uint64) error {
	b := append(open(e.rows, c.Ref()), ',')
	switch c.Kind() {
	case store.KindText:
		b = jsontext.AppendString(b, c.Text())
	case store.KindHistogram:
		b = e.histogram(b, c.Histogram().Snapshot().Cumulative.Count(), delta, c)
	case store.KindCounter:
		b = jsontext.AppendExact(b, c.Uint())
		b = e.rate(append(b, ','), delta)
	default:
		b = e.gauge(b, c)
		b = append(b, ",0"...)
	}
	e.rows = append(b, ']')
	return e.spill()
}

func (e *event) histogram(b []byte, count, delta uint64, c *store.Cursor) []byte {
	b = jsontext.AppendExact(b, count)
	b = e.rate(append(b, ','), delta)
	interval := c.Histogram().Snapshot().Interval
	if interval.Count() == 0 {
		return append(b, ",null"...)
	}
	var room [3]float64
	for i, q := range interval.Quantiles(room[:0], []float64{0.5, 0.9, 0.99}) {
		if i == 0 {
			b = append(b, ",["...)
		} else {
			b = append(b, ',')
		}
		b = render.AppendJSONFloat(b, q)
	}
	return append(b, ']')
}

// gauge appends the value of a gauge, quoted if JavaScript would round it.
func (e *event) gauge(b []byte, c *store.Cursor) []byte {
	e.text = c.AppendValue(e.text[:0])
	if v := c.Float(); math.Abs(v) >= exact && v == math.Trunc(v) {
		b = append(b, '"')
		b = append(b, e.text...)
		return append(b, '"')
	}
	return append(b, e.text...)
}

// rate appends the growth per second, rounded to thousandths.
func (e *event) rate(b []byte, delta uint64) []byte {
	if e.interval <= 0 {
		return append(b, '0')
	}
	r := float64(delta) / e.interval.Seconds()
	if r < 1e12 {
		r = math.Round(r*1000) / 1000
	}
	return strconv.AppendFloat(b, r, 'f', -1, 64)
}

// gone adds a stat that ended.
func (e *event) gone(ref uint64) error {
	if len(e.ends) > 0 {
		e.ends = append(e.ends, ',')
	}
	e.ends = strconv.AppendUint(e.ends, ref, 10)
	return e.spill()
}

// spill sends a part if there is enough for one.
func (e *event) spill() error {
	if len(e.names)+len(e.rows)+len(e.ends) < partBytes {
		return nil
	}
	return e.part(true)
}

// finish sends the last part. It sends nothing if the event is empty, unless
// always is set.
func (e *event) finish(always bool) error {
	if e.empty() && !e.sent && !always {
		return nil
	}
	return e.part(false)
}

// errTooSlow ends an event that is read too slowly. Meanwhile it holds a view of the
// store and, with a filter, a slot that other filters wait for.
var errTooSlow = errors.New("deltastream: the client reads too slowly")

// part sends the collected lists.
func (e *event) part(more bool) error {
	if !e.until.IsZero() && time.Now().After(e.until) {
		return errTooSlow
	}
	b := append(e.buf[:0], "event: delta\n"...)
	if !more {
		b = e.id.append(b)
	}
	b = append(b, "data: "...)
	b = e.head(b, e.id.seq, e.at)
	b = append(b, `,"interval_ms":`...)
	b = strconv.AppendInt(b, e.interval.Milliseconds(), 10)
	if more {
		b = append(b, `,"more":true`...)
	}
	for _, list := range []struct {
		name string
		text []byte
	}{{"new", e.names}, {"rows", e.rows}, {"gone", e.ends}} {
		if len(list.text) > 0 {
			b = append(b, `,"`...)
			b = append(b, list.name...)
			b = append(b, `":[`...)
			b = append(b, list.text...)
			b = append(b, ']')
		}
	}
	if e.skipped > 0 {
		b = append(b, `,"skipped":`...)
		b = strconv.AppendInt(b, int64(e.skipped), 10)
	}
	e.buf = append(b, "}\n\n"...)
	e.names, e.rows, e.ends = e.names[:0], e.rows[:0], e.ends[:0]
	e.sent = true
	return e.send()
}

// notice sends an event about a position. A client continues from id.
func (e *event) notice(kind string, id eventID, seq uint64, at time.Time, reason string, skipped int) error {
	b := append(e.buf[:0], "event: "...)
	b = id.append(append(append(b, kind...), '\n'))
	b = e.head(append(b, "data: "...), seq, at)
	b = append(b, `,"reason":"`...)
	b = append(b, reason...)
	b = append(b, '"')
	if skipped > 0 {
		b = append(b, `,"skipped":`...)
		b = strconv.AppendInt(b, int64(skipped), 10)
	}
	e.buf = append(b, "}\n\n"...)
	return e.send()
}

// heartbeat sends a comment and the position.
func (e *event) heartbeat(id eventID) error {
	e.buf = append(id.append(append(e.buf[:0], ": heartbeat\n"...)), '\n')
	return e.send()
}

// head appends the members that all events have.
func (e *event) head(b []byte, seq uint64, at time.Time) []byte {
	b = append(b, `{"v":1,"seq":`...)
	b = strconv.AppendUint(b, seq, 10)
	b = append(b, `,"t":`...)
	return strconv.AppendInt(b, at.UnixMilli(), 10)
}

// append appends the field with the id. A zero id is empty: a client that loses its
// connection then begins anew.
func (id eventID) append(b []byte) []byte {
	if id == (eventID{}) {
		return append(b, "id:\n"...)
	}
	b = append(b, "id: "...)
	b = strconv.AppendUint(b, id.epoch, 10)
	b = append(b, '.')
	b = strconv.AppendUint(b, id.seq, 10)
	return append(b, '\n')
}

func (e *event) send() error {
	if _, err := e.w.Write(e.buf); err != nil {
		return err
	}
	return e.w.Flush()
}
