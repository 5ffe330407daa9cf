package bootstrap

import (
	"math"

	"github.com/statsd-admin/statsd-admin/match"
	"github.com/statsd-admin/statsd-admin/statsd"
	"go.yaml.in/yaml/v4"
)

// setFilters reads the filters of received samples.
func (s *StatsD) setFilters(d *decoder, n *yaml.Node, path string) {
	f := &s.Filters
	d.message(n, path, []field{
		{"allow", names(&f.Allow)},
		{"deny", names(&f.Deny)},
		{"tags", list(&f.Tags, func(t *statsd.TagFilter) setter {
			return func(d *decoder, n *yaml.Node, path string) {
				d.message(n, path, []field{{"names", names(&t.Names)}, {"drop", texts(&t.Drop)}, {"keep", texts(&t.Keep)}})
				if len(t.Drop) == 0 && len(t.Keep) == 0 {
					d.errorf(n, path, "needs drop or keep: keys of tags")
				}
			}
		})},
		{"tag_values", list(&f.Values, func(v *statsd.TagValues) setter {
			return func(d *decoder, n *yaml.Node, path string) {
				v.Other = "other"
				seen := d.message(n, path, []field{{"key", nonEmpty(&v.Key)}, {"max", whole(&v.Max, 1, math.MaxInt32)}, {"other", nonEmpty(&v.Other)}})
				d.require(n, path, seen, "key", "max")
			}
		})},
	})
}

// names decodes matchers of names.
func names(to *func(name string) bool) setter {
	return func(d *decoder, n *yaml.Node, path string) {
		var all match.List
		list((*[]match.Matcher)(&all), matcher)(d, n, path)
		*to = all.Match
	}
}
