// Package bench measures whole paths of the module and the calls that sit in
// somebody's request path, next to what the hardware allows for the same work.
//
//	go test ./bench -run '^$' -bench . -count 6 | tee new.txt
//	go test ./bench -run '^$' -bench 'Counter/case=same' -cpu 1,2,4
//	go test ./bench -short -run '^$' -bench . -benchtime 1x    # that none is broken
//
// Names of sub-benchmarks are key=value pairs; impl=ours stands next to the
// limit (impl=atomic, impl=memmove and so on). -short leaves out the sizes that
// take seconds to set up. Rivals are measured in bench/peers, a module of its
// own, and budgets checked with bench/budget.
package bench
