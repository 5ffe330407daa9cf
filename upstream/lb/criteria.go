package lb

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"sync/atomic"
)

// Criteria are the keys and values of the subset that a request selects. They are
// compiled once, usually per route, and are safe for use by any number of picks of any
// cluster.
type Criteria struct {
	keys   []string // sorted
	values map[string]any

	keyID string // of the set of keys
	id    string // of keys and values

	// fallbacks are the criteria to try in order if a list of them is allowed, nil
	// without a value named fallbackList. An element is nil if it requires nothing.
	fallbacks []*Criteria

	// reduced caches the criteria reduced to fewer keys, for selectors that fall back
	// to other keys. The list is replaced, never changed.
	reduced atomic.Pointer[[]*Criteria]
}

// fallbackList is the key of a list of objects. If a cluster allows it, the other
// values are tried together with the values of each object, which have precedence.
const fallbackList = "fallback_list"

// NewCriteria returns the criteria for JSON values, nil if there are none.
func NewCriteria(values map[string]any) *Criteria {
	if len(values) == 0 {
		return nil
	}
	c := &Criteria{keys: slices.Sorted(maps.Keys(values)), values: maps.Clone(values)}
	c.keyID = keyID(c.keys)
	encoded := make([]string, len(c.keys))
	for i, k := range c.keys {
		encoded[i] = valueID(values[k])
	}
	c.id = subsetID(c.keyID, encoded)
	if list, ok := values[fallbackList].([]any); ok {
		c.fallbacks = fallbacks(values, list)
	}
	return c
}

func fallbacks(values map[string]any, list []any) []*Criteria {
	if len(list) == 0 {
		list = []any{nil}
	}
	out := make([]*Criteria, len(list))
	for i, item := range list {
		merged := maps.Clone(values)
		object, _ := item.(map[string]any)
		maps.Copy(merged, object)
		delete(merged, fallbackList)
		out[i] = NewCriteria(merged)
	}
	return out
}

// only returns c reduced to keys, which must be a sorted subset of its keys.
func (c *Criteria) only(keys []string) *Criteria {
	for {
		p := c.reduced.Load()
		var known []*Criteria
		if p != nil {
			known = *p
		}
		for _, r := range known {
			if slices.Equal(r.keys, keys) {
				return r
			}
		}
		values := make(map[string]any, len(keys))
		for _, k := range keys {
			values[k] = c.values[k]
		}
		more := append(slices.Clip(known), NewCriteria(values))
		if c.reduced.CompareAndSwap(p, &more) {
			return more[len(more)-1]
		}
	}
}

// keyID names a sorted set of keys.
func keyID(keys []string) string {
	var b []byte
	for _, k := range keys {
		b = appendText(b, k)
	}
	return string(b)
}

// subsetID names a combination of values of the keys.
func subsetID(keyID string, values []string) string {
	b := appendText(nil, keyID)
	for _, v := range values {
		b = append(b, v...)
	}
	return string(b)
}

// valueID is equal for equal JSON values and for no others.
func valueID(v any) string { return string(appendValue(nil, v)) }

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendValue(dst []byte, v any) []byte {
	switch v := v.(type) {
	case bool:
		if v {
			return append(dst, 't')
		}
		return append(dst, 'f')
	case float64:
		return binary.BigEndian.AppendUint64(append(dst, 'd'), math.Float64bits(v+0))
	case string:
		return appendText(append(dst, 's'), v)
	case []any:
		dst = binary.AppendUvarint(append(dst, 'l'), uint64(len(v)))
		for _, e := range v {
			dst = appendValue(dst, e)
		}
		return dst
	case map[string]any:
		dst = binary.AppendUvarint(append(dst, 'm'), uint64(len(v)))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			dst = appendValue(appendText(dst, k), v[k])
		}
		return dst
	}
	return append(dst, 'n')
}
