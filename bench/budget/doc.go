// Package budget keeps benchmarks within bounds that are written down in a
// file, so that a change that makes something slower is seen in review and not
// in production.
//
// A bound on time is a multiple of a calibration benchmark that is measured in
// the same run, which makes it hold on any machine; bounds on memory and
// allocations are absolute. A budget file has a line for each benchmark:
//
//	# one atomic add is the calibration
//	BenchmarkRoute/impl=ours  ns/op<=12*BenchmarkAtomicAdd  allocs/op<=0  B/op<=0
//	BenchmarkTable            B/route<=96
//
// [Meter] gives a benchmark a figure that neighbours on the machine hardly
// change, processor time, for a budget in cpu-ns/op.
//
// Names are as go test prints them, without the number of CPUs at the end;
// units are those of the output, of b.ReportMetric too.
//
// There are two ways to check a budget. The command measures the benchmarks of
// a package:
//
//	go run github.com/statsd-admin/statsd-admin/bench/budget/cmd -file budget.txt ./mypackage
//
// and [Check] does so inside a test:
//
//	func TestBudget(t *testing.T) {
//		budget.Check(t, "budget.txt", map[string]func(*testing.B){"BenchmarkRoute": BenchmarkRoute, ...})
//	}
//
// Both measure in rounds, each benchmark next to its calibration, take the
// median of the ratios of the rounds and a bootstrap interval of 95 % around
// it. A bound holds or is broken if the whole interval is on one side of it.
// What is in doubt is measured once more, and the report says so.
package budget
