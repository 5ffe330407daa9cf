package pages

import (
	"fmt"
	"strconv"
	"time"

	"github.com/statsd-admin/statsd-admin/flush/history"
	"github.com/statsd-admin/statsd-admin/store"
)

// zeroPoint is the moment since which changes are shown.
type zeroPoint struct {
	at     time.Time       // the zero time: there is none
	moment *history.Moment // nil: the history does not have it
}

// zero returns the zero point that the query asks for, in milliseconds since 1970.
func (v *view) zero() (z zeroPoint) {
	ms, err := strconv.ParseInt(v.query.Value("zero"), 10, 48)
	if err != nil || ms <= 0 {
		return z
	}
	z.at = time.UnixMilli(ms)
	if v.src.History != nil {
		z.moment, _ = v.src.History.At(z.at) // too old: the script may know more
	}
	return z
}

// base returns the exact value of a stat at the zero point, the count of a histogram.
// It is empty if there was none; a counter began at zero.
func (z *zeroPoint) base(c *store.Cursor) string {
	switch {
	case z.moment == nil || c.Kind() == store.KindText || !z.moment.Has(c) && c.Kind() == store.KindGauge:
		return ""
	case !z.moment.Has(c):
		return "0"
	case c.Kind() == store.KindHistogram:
		return fmt.Sprint(z.moment.Histogram(c).Cumulative.Count())
	}
	raw := c.Raw()
	c.SetRaw(z.moment.Raw(c))
	text := string(c.AppendValue(nil))
	c.SetRaw(raw)
	return text
}

// change returns the change of a stat since the zero point, for the order.
func (z *zeroPoint) change(c *store.Cursor) float64 {
	base, err := strconv.ParseFloat(z.base(c), 64)
	if err != nil {
		return 0
	}
	return valueKey(c) - base
}
