package configdump_test

import (
	"fmt"

	"github.com/statsd-admin/statsd-admin/server/configdump"
)

// Every dump has the usual sections, even if they are empty.
func ExampleUsual() {
	_, has := configdump.Usual()["routes"]
	fmt.Println(has)
	// Output: true
}
