// Package budget checks benchmarks against bounds in a file, so that a slowdown is
// noticed in review and not in production.
//
// A bound on time is a multiple of a calibration benchmark measured in the same run,
// so it holds on any machine. Bounds on memory and allocations are absolute. A budget
// file has one line per benchmark:
//
//	# one atomic add is the calibration
//	BenchmarkRoute/impl=ours  ns/op<=12*BenchmarkAtomicAdd  allocs/op<=0  B/op<=0
//	BenchmarkTable            B/route<=96
//
// [Meter] lets a benchmark report processor time, which other load on the machine
// hardly affects, for bounds on cpu-ns/op.
//
// Names are printed by go test, without the number of CPUs at the end. Units
// include the units of b.ReportMetric.
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
// Both measure in rounds, each benchmark next to its calibration, and take the median
// of the ratios with a 95 % bootstrap interval. A bound holds or is broken if the
// whole interval is on one side of it. A doubtful result is measured a second time,
// and the report says so.
package budget
