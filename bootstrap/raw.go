package bootstrap

// Value returns the part as plain values: map[string]any, []any, string,
// float64, bool and nil, which is also what an absent part is.
func (r Raw) Value() any {
	if r.Node == nil {
		return nil
	}
	return new(decoder).plain(r.Node, "")
}
