// Package bench measures complete paths through the module and the calls that sit in
// a request path, next to the hardware's limit for the same work.
//
//	go test ./bench -run '^$' -bench . -count 6 | tee new.txt
//	go test ./bench -run '^$' -bench 'Counter/case=same' -cpu 1,2,4
//	go test ./bench -short -run '^$' -bench . -benchtime 1x    # that none is broken
//
// Names of sub-benchmarks are key=value pairs; impl=ours stands next to the limit
// (impl=atomic, impl=memmove and so on). -short skips the sizes that take seconds to
// set up. bench/peers, a separate module, measures other libraries; bench/budget
// checks budgets.
package bench
