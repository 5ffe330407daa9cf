package ui_test

import (
	"fmt"
	"strings"

	"github.com/statsd-admin/statsd-admin/admin/ui"
)

func ExampleLoad() {
	assets := ui.Load()
	path := assets.Path("admin.css")
	fmt.Println(strings.HasPrefix(path, ui.Prefix), assets.Find(path).ContentType)
	// Output: true text/css; charset=UTF-8
}
