package layers

//lint:file-ignore ST1005 these texts are part of the interface: tools and people look for them

import (
	"errors"
	"fmt"
)

// ErrNoAdminLayer is returned by [Loader.Modify] if there is no admin layer.
var ErrNoAdminLayer = errors.New("No admin layer specified")

func errDuplicateLayer(name string) error { return fmt.Errorf("Duplicate layer name: %s", name) }

func errManyAdminLayers() error {
	return errors.New("Too many admin layers specified in LayeredRuntime, at most one may be specified")
}

func errInvalidValue(key string) error {
	return fmt.Errorf("Invalid runtime entry value for %s", key)
}

func errInvalidPath(path string) error { return fmt.Errorf("Invalid path: %s", path) }

func errTooDeep() error { return fmt.Errorf("Walk recursion depth exceeded %d", maxWalkDepth) }

// LimitError is returned by [Loader.Modify] when the admin layer would hold too
// much.
type LimitError struct {
	What  string // "entries" or "bytes"
	Limit int
}

// Error names the limit.
func (e *LimitError) Error() string {
	return fmt.Sprintf("runtime overrides would exceed the limit of %d %s; remove some with an empty value", e.Limit, e.What)
}
