package pages

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/store"
)

// sparkPoints is how many steps a small line of time shows.
const sparkPoints = 60

// spark is what a small line of time shows: the changes per second of counters, the
// values of gauges. The script continues it.
type spark struct {
	points   []float64 // oldest first
	step     time.Duration
	fromZero bool
	latest   float64   // change per second in the last step
	changed  time.Time // end of the last step with a change; zero if there is none
	still    bool      // no change in the last hour, and the stat is older
}

// spark returns the steps of the stat under c since the last flushes, as far as the
// history has them. Histograms have no points.
func (v *view) spark(c *store.Cursor) (s spark) {
	s.fromZero = c.Kind() != store.KindGauge
	if v.src.History == nil || c.Kind() == store.KindText {
		return s
	}
	from := v.now.Add(-time.Hour)
	list, complete := v.src.History.Series(c, from)
	for i := len(list) - 1; i >= 0 && s.changed.IsZero(); i-- {
		if list[i].Delta != 0 || list[i].Stats != nil && list[i].Stats.Count() > 0 {
			s.changed = list[i].End
		}
	}
	s.still = s.changed.IsZero() && complete.Before(from) && c.Created().Before(from)
	if len(list) > 0 && s.fromZero {
		s.latest = list[len(list)-1].PerSecond(c)
	}
	if c.Kind() == store.KindHistogram {
		return s
	}
	list = list[max(0, len(list)-sparkPoints):]
	for i := len(list) - 1; i >= 0; i-- {
		length := list[i].End.Sub(list[i].Start)
		s.step = cmp.Or(s.step, length)
		if length > 2*s.step { // the coarse steps begin
			list = list[i+1:]
			break
		}
	}
	raw := c.Raw()
	for i := range list {
		if s.fromZero {
			s.points = append(s.points, list[i].PerSecond(c))
			continue
		}
		c.SetRaw(list[i].Raw)
		s.points = append(s.points, c.Float())
	}
	c.SetRaw(raw)
	return s
}

// add adds another series, step by step from the end.
func (s *spark) add(other spark) {
	s.step, s.fromZero, s.latest = max(s.step, other.step), true, s.latest+other.latest
	if more := len(other.points) - len(s.points); more > 0 {
		s.points = append(make([]float64, more), s.points...)
	}
	for i, x := range other.points {
		s.points[len(s.points)-len(other.points)+i] += x
	}
}

// sparkData appends the attributes from which the script continues the line. Equal
// values that follow each other are counted.
func (v *view) sparkData(s *spark) {
	if len(s.points) == 0 {
		return
	}
	var b strings.Builder
	for i := 0; i < len(s.points); {
		n := 1
		for i+n < len(s.points) && s.points[i+n] == s.points[i] {
			n++
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(strconv.FormatFloat(s.points[i], 'g', 6, 64))
		if n > 1 {
			fmt.Fprintf(&b, "*%d", n)
		}
		i += n
	}
	v.Put(h(" data-step='"), int(s.step.Milliseconds()), h("' data-points='"), b.String(), h("'"))
}

// sparkLine appends the line, as the script draws it. A line that is always zero is
// left out.
func (v *view) sparkLine(s *spark) {
	if len(s.points) < 2 {
		return
	}
	low, high := slices.Min(s.points), slices.Max(s.points)
	if low == 0 && high == 0 {
		return
	}
	width := max(high-low, math.Abs(high)*0.1, 1e-9) // noise of a gauge stays flat
	low = (high+low)/2 - width/2
	if s.fromZero {
		low, width = 0, max(high, 1e-9)
	}
	v.Put(h("<svg class='s' viewBox='0 0 96 20' preserveAspectRatio='none' aria-hidden='true'><polyline class='ln' points='"))
	for i, x := range s.points {
		if i > 0 && i < len(s.points)-1 && x == s.points[i-1] && x == s.points[i+1] {
			continue // inside of a straight part
		}
		v.Put(fmt.Sprintf("%.1f,%.1f ", 96-float64(len(s.points)-1-i)*96/(sparkPoints-1), 18.5-(x-low)/width*17))
	}
	v.Put(h("'/></svg>"))
}
