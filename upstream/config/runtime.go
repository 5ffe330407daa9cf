package config

// Runtime reads runtime values: numbers that override the configuration while a
// program runs. Both methods return otherwise if there is no such key or its value is
// not such a number. Implementations are safe for concurrent use, and reading must be
// cheap: picks and requests do it. *layers.Loader of package server/layers is one.
type Runtime interface {
	Uint(key string, otherwise uint64) uint64
	Float(key string, otherwise float64) float64
}

// NoRuntime is a [Runtime] without values.
type NoRuntime struct{}

// Uint implements [Runtime].
func (NoRuntime) Uint(_ string, otherwise uint64) uint64 { return otherwise }

// Float implements [Runtime].
func (NoRuntime) Float(_ string, otherwise float64) float64 { return otherwise }

// RuntimeDouble is a number that a runtime value may override.
type RuntimeDouble struct {
	Default float64
	Key     string // empty: not overridable
}

// Value returns the runtime value, or the default.
func (d RuntimeDouble) Value(rt Runtime) float64 {
	if d.Key == "" {
		return d.Default
	}
	return rt.Float(d.Key, d.Default)
}
