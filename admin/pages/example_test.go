package pages_test

import (
	"fmt"
	"strings"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/admin/pages"
	"github.com/statsd-admin/statsd-admin/store"
)

func ExampleAdd() {
	st := store.New(store.Options{})
	st.Scope("shop").Counter("orders").Add(1234)
	srv, err := admin.New(admin.Config{Store: st})
	if err != nil {
		panic(err)
	}
	if err := pages.Add(srv); err != nil {
		panic(err)
	}
	page := srv.Request("GET", "/ui/stats?filter=orders", nil)
	fmt.Println(page.Status, strings.Contains(string(page.Body), ">1,234<"))

	table := srv.Request("GET", "/ui/stats?filter=orders&tsv=stats", nil)
	fmt.Printf("%s", table.Body)
	// Output:
	// 200 true
	// Name	Type	Value	Trend
	// shop.orders	counter	1234
}
