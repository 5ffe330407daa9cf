// Package tags splits a full stat name into a base name and labels.
//
// A rule can cut a part out of the full name and make it the value of a tag:
//
//	e, err := tags.New(tags.Config{UseDefaults: true})
//	...
//	name, labels := e.Extract("cluster.checkout.upstream_rq_404", nil)
//	// name   = "cluster.upstream_rq"
//	// labels = [{proxy.response_code 404} {proxy.cluster_name checkout}]
//
// Every rule sees the original name. The parts to remove are collected, merged
// where they overlap, and cut at the end. The order of the rules determines the
// order of the labels, and which rule wins if several rules for one tag match:
// the first.
//
// The order is: rules for any first token, then rules for the first token of
// this name; in both groups default regex rules, default token rules, command
// line tags, configured tags.
//
// An [Extractor] is immutable and safe for concurrent use. Extraction with the
// default rules allocates only the base name, and with [Extractor.ExtractInto]
// nothing: every default rule has a hand-written matcher over the dot-separated
// tokens of the name. Tests compare the matchers with the regular expressions
// in the table of rules.
package tags
