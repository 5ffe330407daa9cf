package statsd

import "github.com/statsd-admin/statsd-admin/store/tags"

// tagValues counts the different values of tags by key. The zero value is
// empty.
type tagValues struct {
	series map[uint32][]tags.Tag     // by number of their cell
	uses   map[string]map[string]int // by key and value: how many series
}

// full reports whether tgs would add a value to a key that has most already.
func (v *tagValues) full(tgs []tags.Tag, most int) bool {
	for _, t := range tgs {
		if values := v.uses[t.Name]; len(values) >= most && values[t.Value] == 0 {
			return true
		}
	}
	return false
}

// hold records the tags of a series.
func (v *tagValues) hold(cell uint32, tgs []tags.Tag) {
	if len(tgs) == 0 {
		return
	}
	if v.series == nil {
		v.series, v.uses = make(map[uint32][]tags.Tag), make(map[string]map[string]int)
	}
	v.series[cell] = tgs
	for _, t := range tgs {
		values := v.uses[t.Name]
		if values == nil {
			values = make(map[string]int)
			v.uses[t.Name] = values
		}
		values[t.Value]++
	}
}

// release removes the tags of a series that ended.
func (v *tagValues) release(cell uint32) {
	for _, t := range v.series[cell] {
		values := v.uses[t.Name]
		if values[t.Value]--; values[t.Value] == 0 {
			delete(values, t.Value)
		}
		if len(values) == 0 {
			delete(v.uses, t.Name)
		}
	}
	delete(v.series, cell)
}

// most returns the largest number of values of a key.
func (v *tagValues) most() (n int) {
	for _, values := range v.uses {
		n = max(n, len(values))
	}
	return n
}
