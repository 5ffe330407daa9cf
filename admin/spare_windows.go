package admin

import (
	"net"
	"time"
)

// speaks reports whether data arrives within limit. This system cannot look at data
// without reading it.
func speaks(net.Conn, time.Duration) bool { return true }
