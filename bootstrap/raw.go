package bootstrap

// Error returns what somebody else found wrong with the part.
func (r Raw) Error(err error) *Error {
	e := &Error{Field: r.Path, Message: err.Error()}
	if r.Node != nil {
		e.Position = r.Position(r.Node)
	}
	return e
}

// Value returns the part as plain values: map[string]any, []any, string,
// float64, bool and nil, which is also what an absent part is.
func (r Raw) Value() any {
	if r.Node == nil {
		return nil
	}
	return new(decoder).plain(r.Node, "")
}
