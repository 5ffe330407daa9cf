package tags_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/store/tags"
)

func TestConfiguredTokens(t *testing.T) {
	for _, tt := range []struct{ tokens, name, want string }{
		{"shop.$.**", "shop.books.orders.paid", "shop.orders.paid [{k books}]"},
		{"*.by.$", "orders.by.eu", "orders.by [{k eu}]"},
		{"*.by.$", "a.b.by.eu", "a.b.by.eu []"},
		{"$.**.b.**.d.**", "a.b.c.d.e", "b.c.d.e [{k a}]"},
		{"$" + strings.Repeat(".b", 63), "a" + strings.Repeat(".b", 63), strings.Repeat(".b", 63)[1:] + " [{k a}]"},
		{"**.region.$.*", "a.b.region.eu.c", "a.b.region.c [{k eu}]"},
	} {
		e, err := tags.New(tags.Config{Tags: []tags.Spec{{Name: "k", Tokens: tt.tokens}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintln(e.Extract(tt.name, nil)); got != tt.want+"\n" {
			t.Errorf("%s: %q is %q, want %q", tt.tokens, tt.name, got, tt.want)
		}
	}
	for _, bad := range []tags.Spec{
		{Name: "k", Tokens: "a.*"}, {Name: "k", Tokens: "$.$"}, {Name: "k", Tokens: "**.**.**.**.$"}, {Name: "k", Tokens: "$.a", Regex: "x"},
		{Name: "k", Tokens: "$" + strings.Repeat(".b", 64)},
	} {
		if _, err := tags.New(tags.Config{Tags: []tags.Spec{bad}}); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
}
