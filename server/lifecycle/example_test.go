package lifecycle_test

import (
	"fmt"

	"github.com/statsd-admin/statsd-admin/server/lifecycle"
)

func ExampleServer() {
	life := lifecycle.New(lifecycle.Config{})
	rules := life.NewManager(lifecycle.Listener, "ingress").Add("rules", nil)
	life.Initialize(nil)
	fmt.Println(life.State())
	rules.Ready()
	fmt.Println(life.State())
	life.FailHealth()
	fmt.Println(life.State())
	// Output:
	// INITIALIZING
	// LIVE
	// DRAINING
}
