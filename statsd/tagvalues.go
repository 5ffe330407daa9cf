package statsd

import (
	"github.com/statsd-admin/statsd-admin/internal/shrinkmap"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// tagValues counts the different values of tags by key. The zero value is
// empty.
type tagValues struct {
	series shrinkmap.Map[uint32, []tags.Tag]                  // by number of their cell
	uses   shrinkmap.Map[string, *shrinkmap.Map[string, int]] // by key and value: how many series
}

// full reports whether tgs would add a value to a key that has most already.
func (v *tagValues) full(tgs []tags.Tag, most int) bool {
	for _, t := range tgs {
		if values, ok := v.uses.Get(t.Name); ok && values.Len() >= most && values.At(t.Value) == 0 {
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
	v.series.Set(cell, tgs)
	for _, t := range tgs {
		values := v.uses.At(t.Name)
		if values == nil {
			values = new(shrinkmap.Map[string, int])
			v.uses.Set(t.Name, values)
		}
		values.Set(t.Value, values.At(t.Value)+1)
	}
}

// release removes the tags of a series that ended.
func (v *tagValues) release(cell uint32) {
	for _, t := range v.series.At(cell) {
		values := v.uses.At(t.Name)
		if n := values.At(t.Value) - 1; n > 0 {
			values.Set(t.Value, n)
			continue
		}
		if values.Delete(t.Value); values.Len() == 0 {
			v.uses.Delete(t.Name)
		}
	}
	v.series.Delete(cell)
}

func (v *tagValues) of(key string) int {
	if values := v.uses.At(key); values != nil {
		return values.Len()
	}
	return 0
}

// most returns the largest number of values of a key.
func (v *tagValues) most() (n int) {
	for _, values := range v.uses.All() {
		n = max(n, values.Len())
	}
	return n
}
