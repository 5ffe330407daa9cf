package mapping_test

import (
	"fmt"

	"github.com/statsd-admin/statsd-admin/statsd/mapping"
)

func ExampleRules_Find() {
	rules, err := mapping.New(mapping.Config{Rules: []mapping.Rule{
		{Match: "app.*.requests.*", Name: "requests_total", Labels: []mapping.Label{{Name: "app", Value: "$1"}, {Name: "code", Value: "$2"}}},
		{Match: `\.debug\.`, Regex: true, Name: "debug", Drop: true},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range []string{"app.shop.requests.200", "app.debug.x", "other"} {
		m, ok := rules.Find(name, mapping.Counter)
		switch {
		case !ok:
			fmt.Println(name, "is not mapped")
		case m.Rule().Drop:
			fmt.Println(name, "is dropped")
		default:
			fmt.Printf("%s is %s{app=%q,code=%q}\n", name, m.Name(), m.Label(0), m.Label(1))
		}
	}
	// Output:
	// app.shop.requests.200 is requests_total{app="shop",code="200"}
	// app.debug.x is dropped
	// other is not mapped
}
