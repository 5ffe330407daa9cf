package match_test

import (
	"fmt"

	"github.com/statsd-admin/statsd-admin/match"
)

func Example() {
	health, err := match.Regex(`http\..*\.health_check_\w+`)
	if err != nil {
		fmt.Println(err)
		return
	}
	keep := match.List{match.Prefix("cluster."), match.Suffix("_total"), health}
	for _, name := range []string{"cluster.checkout.upstream_rq", "http.in.rq_total", "http.in.health_check_ok", "server.live"} {
		fmt.Println(name, keep.Match(name))
	}
	// Output:
	// cluster.checkout.upstream_rq true
	// http.in.rq_total true
	// http.in.health_check_ok true
	// server.live false
}

func ExampleNew() {
	m, err := match.New(match.KindContains, "Timeout", true)
	fmt.Println(m.Match("upstream_rq_timeout"), err)

	_, err = match.New(match.KindRegex, "upstream_(rq", false)
	fmt.Println(err)
	// Output:
	// true <nil>
	// match: regex "upstream_(rq": missing closing )
}
