// Package mapping maps received StatsD names to the names, labels and options
// of metrics, by the rules of statsd_exporter's mapping file.
//
//	rules, err := mapping.New(mapping.Config{Rules: []mapping.Rule{
//		{Match: "app.*.requests", Name: "requests_total", Labels: []mapping.Label{{Name: "app", Value: "$1"}}},
//	}})
//	if m, ok := rules.Find("app.shop.requests", mapping.Counter); ok {
//		fmt.Println(m.Name()) // requests_total
//	}
//
// All glob rules are tried before any regular expression, whatever their order
// in the list. Of the globs that match, the first one in the list wins; of the
// regular expressions too. Globs share a trie, so the cost of a name depends on
// its segments and not on the number of rules. Each regular expression that is
// tried costs a match.
//
// [Rules] are immutable and safe for concurrent use. The package knows no file
// format; ParseMapping of package bootstrap parses mapping files.
package mapping
