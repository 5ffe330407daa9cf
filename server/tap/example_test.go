package tap_test

import (
	"fmt"

	"github.com/statsd-admin/statsd-admin/server/tap"
)

// Code that could be tapped asks its source for a session, which costs one atomic
// load while there is none.
func ExampleTap_Register() {
	t := tap.New(tap.Config{})
	requests := t.Register("requests")
	fmt.Println(requests.Session() == nil)
	// Output: true
}
