// Package tags splits a full stat name into a base name and labels.
//
// A rule looks at the full name and may take a piece out of it as the value of
// a tag:
//
//	e, err := tags.New(tags.Config{UseDefaults: true})
//	...
//	name, labels := e.Extract("cluster.checkout.upstream_rq_404", nil)
//	// name   = "cluster.upstream_rq"
//	// labels = [{proxy.response_code 404} {proxy.cluster_name checkout}]
//
// Every rule sees the original name. The pieces to remove are collected,
// overlapping ones are united, and all are cut out at the end; so the order of
// rules decides only the order of the labels, and which of several rules for
// one tag name wins: the first that matches.
//
// The order is: rules that are not tied to a first token, then rules that are
// tied to the first token of this name; inside both groups default regex
// rules, default token rules, command line tags, configured tags.
//
// An [Extractor] is immutable and safe for concurrent use. Extraction with the
// default rules allocates nothing but the base name, and with
// [Extractor.ExtractInto] not even that: every default rule is matched by hand
// over the dot-separated tokens of the name. The regular expressions beside
// the rules are what the tests compare the hand-written matchers with.
package tags
