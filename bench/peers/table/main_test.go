package main

import (
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/bench/budget"
)

func TestTable(t *testing.T) {
	const out = `
BenchmarkCounter/case=one/impl=ours-2 100 4 ns/op 0 B/op 0 allocs/op
BenchmarkCounter/case=one/impl=ours-2 100 3 ns/op 0 B/op 0 allocs/op
BenchmarkCounter/case=one/impl=ours-2 100 5 ns/op 0 B/op 0 allocs/op
BenchmarkCounter/case=one/impl=ours-2 100 4 ns/op 0 B/op 0 allocs/op
BenchmarkCounter/case=one/impl=other-2 100 20.5 ns/op
BenchmarkCreate/names=10/impl=other-2 100 12345 ns/op 1234.5 ns/name 80 B/name
`
	results, err := budget.ParseResults(strings.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	const want = `| workload | ours | other |
|---|---:|---:|
| Counter case=one, ns/op | 4 ±6% | 20.5 |
| Create names=10, B/name |  | 80 |
| Create names=10, ns/name |  | 1234 |
`
	if got := table(results); got != want {
		t.Errorf("table:\n%swant:\n%s", got, want)
	}
}
