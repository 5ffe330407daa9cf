package transport

import (
	"fmt"
	"math"
	"testing"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// TestSocketOptionsThatDoNotFit: values have 32 bits, with or without a sign, and errors
// name the option by its place in the configuration, whenever it is set.
func TestSocketOptionsThatDoNotFit(t *testing.T) {
	for _, value := range []int64{math.MinInt32 - 1, math.MaxUint32 + 1} {
		_, err := newSource(&config.Bind{Options: []config.SocketOption{
			{IsInt: true, Int: math.MaxUint32, State: config.StateBound}, {IsInt: true, Int: math.MinInt32, State: config.StateBound}, {IsInt: true, Int: value, State: config.StatePrebind},
		}}, nil, "bind")
		if want := fmt.Sprintf("bind.socket_options[2].int_value: %d does not fit in 32 bits", value); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
