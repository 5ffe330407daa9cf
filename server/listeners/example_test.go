package listeners_test

import (
	"fmt"
	"net"

	"github.com/statsd-admin/statsd-admin/server/listeners"
)

func ExampleRegistry() {
	reg := listeners.New(listeners.Config{})
	err := reg.Add(listeners.Listener{
		Name: "ingress", Direction: listeners.Inbound,
		Stop: func() { fmt.Println("stopped") },
	})
	if err != nil {
		fmt.Println(err)
	}
	reg.Drain(true)
	fmt.Println(reg.Add(listeners.Listener{Name: "late", Direction: listeners.Inbound}) != nil)
	// Output:
	// stopped
	// true
}

func ExampleFromNet() {
	fmt.Println(listeners.FromNet(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}).IP)
	// Output: 127.0.0.1:8080
}
