package statsd

import "time"

// limit identifies a bound on what senders can create.
type limit uint8

const (
	noLimit limit = iota
	limitSeries
	limitFirstSegment
	limitPerName
	limitMemory
	limitRate
	limitSets
	limitTagValues
	limitStore

	limits = 9
)

// String returns the word for l in metrics and on pages.
func (l limit) String() string {
	return [limits]string{"none", "series", "series_per_first_segment", "series_per_name",
		"memory_bytes", "new_series_per_second", "sets", "values_per_tag_key", "store"}[l]
}

// unlimited is the value of a disabled limit.
const unlimited = 1<<31 - 1

// nearly reports whether use is at least four fifths of a limit.
func nearly(use, most int) bool { return most != unlimited && use*5 >= most*4 }

// perSecond allows max operations in each second of the clock.
type perSecond struct {
	max    int
	second int64
	done   int
}

// full reports whether the current second is used up.
func (p *perSecond) full(now time.Time) bool {
	if s := now.Unix(); s != p.second {
		p.second, p.done = s, 0
	}
	return p.done >= p.max
}
