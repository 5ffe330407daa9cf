// Package line is the grammar of StatsD and its dialects: it takes one line
// apart and says what it means, or why it means nothing.
//
//	p := line.New(line.Config{})
//	var l line.Line // reuse it: it owns the memory of what it holds
//	if reason := p.Parse(&l, []byte("rt:12.5:13|ms|@0.5|#route:/a")); reason != line.OK {
//		return reason
//	}
//
// Parsing has three stages, so that a caller who has seen a name before can
// skip the middle one: [Parser.Split] finds the parts, [Parser.Identify] cleans
// and checks name and tags, [Parser.Numbers] reads the values. [Parser.Parse]
// does all three.
//
// A line that breaks several rules has exactly one reason: the one of the
// earliest step: length, encoding, the end of the name section, the name, the
// fields from left to right, the tags, the values from left to right.
//
// Nothing here allocates for metrics once a Line has grown to the size its
// lines need. A Parser may be shared by any number of goroutines, a Line not.
package line
