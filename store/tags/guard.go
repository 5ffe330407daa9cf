package tags

// guard is a cheap test that all names pass that a rule can match. It compares
// lengths, not text, since the positions of the dots are known.
type guard struct {
	kind   guardKind
	min    uint8 // least number of tokens
	token  uint8 // tokenLength, lengthFromEnd: which token
	length uint8 // its length
}

type guardKind uint8

const (
	tokenCount    guardKind = iota // only the number of tokens counts
	tokenLength                    // token number token, from the start
	lengthFromEnd                  // the same from the end, 1 is the last token
	codeSuffix                     // an underscore before the last three bytes
)

func (g guard) pass(n tokenized) bool {
	tokens := len(n.bounds) - 1
	if tokens < int(g.min) {
		return false
	}
	switch g.kind {
	case tokenLength:
		i := int(g.token)
		return int(n.bounds[i+1]-n.bounds[i]) == int(g.length)+1
	case lengthFromEnd:
		i := tokens - int(g.token)
		return int(n.bounds[i+1]-n.bounds[i]) == int(g.length)+1
	case codeSuffix:
		i := len(n.text) - len("_404")
		return i >= 0 && n.text[i] == '_'
	}
	return true
}

// guard returns a guard for r. The guard of fixed rules and expressions passes
// every name.
func (r *rule) guard() guard {
	switch r.kind {
	case tokenSearch:
		return r.pattern.guard()
	case byHand:
		return r.passes
	}
	return guard{}
}

// guard uses the first literal token after the first token, by which programs
// are selected before guards run.
func (p pattern) guard() guard {
	var g guard
	fixedPlace := true
	for i, t := range p {
		if t.kind == some {
			fixedPlace = false
			if i < len(p)-1 {
				continue
			}
		}
		g.min++
		if t.kind == literal && i > 0 && fixedPlace && g.kind == tokenCount {
			g.kind, g.token, g.length = tokenLength, uint8(i), uint8(len(t.text))
		}
	}
	return g
}
