package status_test

import (
	"fmt"

	"github.com/statsd-admin/statsd-admin/upstream/status"
)

func ExampleFlags() {
	var f status.Flags
	fmt.Println(f, f.Health() == status.Healthy)
	f |= status.FailedActiveHC | status.FailedOutlierCheck
	fmt.Println(f, f.Health() == status.Healthy)
	// Output:
	// healthy true
	// /failed_active_hc/failed_outlier_check false
}
