package tags

// Step is a tag of a name and the rule that yielded it.
type Step struct {
	Tag
	// Regex or Tokens is the rule, as in [Spec]. Both are empty for a fixed value.
	Regex, Tokens string
	// Removed is the part of the name that the rule matched and removed, from byte
	// Offset on. It is empty for a fixed value.
	Removed string
	Offset  int
}

// Explain returns the steps by which [Extractor.Extract] splits name, in the order of
// the tags. It omits rules without a match and rules whose tag was set before.
func (e *Extractor) Explain(name string) (steps []Step) {
	e.run(name, nil, nil, &steps)
	return steps
}

// step describes that r yielded value and removed cut.
func (r *rule) step(name, value string, cut span) Step {
	s := Step{Tag: Tag{r.tag, value}, Removed: name[cut.start:cut.end], Offset: cut.start}
	if r.kind == tokenSearch {
		s.Tokens = r.text
	} else {
		s.Regex = r.text
	}
	return s
}
