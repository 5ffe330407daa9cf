// Package line implements the grammar of StatsD and its dialects: it splits a
// line into its parts and checks them.
//
//	p := line.New(line.Config{})
//	var l line.Line // reuse it: it owns the memory of its parts
//	if reason := p.Parse(&l, []byte("rt:12.5:13|ms|@0.5|#route:/a")); reason != line.OK {
//		return reason
//	}
//
// Parsing has three stages, so that a caller that caches names can skip the
// middle one: [Parser.Split] finds the parts, [Parser.Identify] cleans and
// checks the name and the tags, [Parser.Numbers] reads the values.
// [Parser.Parse] does all three.
//
// A line that violates several rules has one reason, that of the first step in
// this order: length, encoding, the end of the name section, the name, the
// fields from left to right, the tags, the values from left to right.
//
// Parsing metrics does not allocate once a Line has grown to the size of its
// input. A Parser is safe for concurrent use, a Line is not.
package line
