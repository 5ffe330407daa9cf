package tags_test

import (
	"fmt"

	"github.com/statsd-admin/statsd-admin/store/tags"
)

func ExampleExtractor_Extract() {
	e, err := tags.New(tags.Config{UseDefaults: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(e.Extract("cluster.checkout.upstream_rq_404", nil))
	// Output: cluster.upstream_rq [{proxy.response_code 404} {proxy.cluster_name checkout}]
}

func ExampleExtractor_Explain() {
	e, err := tags.New(tags.Config{UseDefaults: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range e.Explain("cluster.checkout.upstream_rq_404") {
		fmt.Printf("%s=%s removes %q by %s%s\n", s.Name, s.Value, s.Removed, s.Regex, s.Tokens)
	}
	// Output:
	// proxy.response_code=404 removes "_404" by _rq(_(\d{3}))$
	// proxy.cluster_name=checkout removes "checkout." by cluster.$.**
}

func ExampleSpec() {
	region := "eu"
	e, err := tags.New(tags.Config{Tags: []tags.Spec{
		{Name: "shop", Regex: `^shop\.((\w+)\.)`},
		{Name: "region", Fixed: &region},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(e.Extract("shop.books.orders", nil))
	// Output: shop.orders [{region eu} {shop books}]
}
