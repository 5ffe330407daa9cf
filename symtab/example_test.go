package symtab_test

import (
	"fmt"

	"github.com/statsd-admin/statsd-admin/symtab"
)

func Example() {
	t := symtab.New(symtab.Options{})
	a := t.AppendEncode(nil, "cluster.checkout.upstream_rq")
	b := t.AppendEncode(nil, "cluster.cart.upstream_rq")
	fmt.Printf("%s: %d bytes\n", t.AppendText(nil, a), len(a))
	fmt.Println(t.NumSymbols(), "symbols for both names")
	t.Release(a)
	t.Release(b)
	fmt.Println(t.NumSymbols(), "symbols after their release")
	// Output:
	// cluster.checkout.upstream_rq: 4 bytes
	// 4 symbols for both names
	// 0 symbols after their release
}
