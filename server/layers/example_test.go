package layers_test

import (
	"fmt"

	"github.com/statsd-admin/statsd-admin/server/layers"
)

func Example() {
	l, err := layers.New(layers.Config{Layers: []layers.Layer{
		{Name: "base", Kind: layers.Static, Values: map[string]any{"queue": map[string]any{"size": 100, "strict": true}}},
		{Name: "admin", Kind: layers.Admin},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := l.Modify(map[string]string{"queue.size": "250"}); err != nil {
		fmt.Println(err)
		return
	}
	s := l.Snapshot()
	fmt.Println(s.Uint("queue.size", 10), s.Bool("queue.strict", false), s.Uint("queue.wait", 5))
	// Output: 250 true 5
}

// A snapshot lists the values of each layer.
func ExampleSnapshot_All() {
	l, err := layers.New(layers.Config{Layers: []layers.Layer{
		{Name: "base", Kind: layers.Static, Values: map[string]any{"size": 100}},
		{Name: "remote", Kind: layers.RTDS},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := l.SetLayer("remote", map[string]any{"size": 200}); err != nil {
		fmt.Println(err)
		return
	}
	s := l.Snapshot()
	for key := range s.All() {
		value, _ := s.Get(key)
		fmt.Println(key, value, s.Layers())
	}
	// Output: size 200 [base remote]
}
