package arch

import (
	"go/ast"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/percpu"
)

// pinned are the functions that run, in whole or in part, while their goroutine is pinned
// to its scheduler slot or holds it, and the functions that each calls. Those marked
// "unpinned" are called outside of that part; what it calls itself is in this table, too. A
// function that holds its slot calls nothing meanwhile, because it can lose the slot there.
//
// Nothing pinned may panic, block, allocate or call a function that is not known. The
// compiler makes calls of the runtime of all that: of an index or slice expression that it
// cannot prove, a division, a conversion, a map, a channel, an allocation.
var pinned = map[string]string{
	"store.(*word).count": "unpinned:store.(*word).countShared",

	"histogram.(*Histogram).record": "unpinned:histogram.(*Histogram).recordMany",
	"histogram.(*Histogram).recordMany": "histogram.(*shard).ownMany unpinned:histogram.(*Histogram).makePage " +
		"unpinned:histogram.(*Histogram).recordShared unpinned:histogram.(*Histogram).ownSlot",
	"histogram.(*shard).ownMany":  "histogram.(*Layout).slot histogram.(*shard).ownCount",
	"histogram.(*Layout).slot":    "",
	"histogram.(*shard).ownCount": "",

	"symtab.(*recent).add": "",

	// A schedule has a heap of fixed length, so its indexes are valid. The function that
	// it calls is the weight; lb.reading keeps the code of others out of that.
	"upstream/lb.(*schedule).next": "upstream/lb.(*edf).next runtime.panicBounds unpinned:indirect " +
		"unpinned:internal/sync.(*Mutex).lockSlow unpinned:runtime.deferreturn",
	"upstream/lb.(*edf).next": "upstream/lb.(*edf).down indirect runtime.panicBounds",
	"upstream/lb.(*edf).down": "runtime.panicBounds",
}

// TestPinned reads what the compiler made of the functions that pin or hold. It marks where
// the runtime must not preempt a goroutine with PCDATA $0, $-2.
func TestPinned(t *testing.T) {
	if !percpu.Enabled {
		t.Skip("this build does not pin")
	}
	args := []string{"build", "-gcflags=-S"}
	for _, p := range loadTree(t) {
		if slices.ContainsFunc(p.files, pins) {
			args = append(args, "./"+p.dir)
		}
	}
	build := exec.Command("go", args...)
	build.Dir = filepath.Join("..", "..")
	out, err := build.CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v\n%.2000s", err, out)
	}
	seen := make(map[string]bool)
	in, holds, marked := "", false, false
	for line := range strings.Lines(string(out)) {
		if name, _, ok := strings.Cut(line, " STEXT "); ok {
			in = strings.TrimPrefix(name, modulePath+"/")
			seen[in], holds, marked = true, false, false
			continue
		}
		if _, mark, ok := strings.Cut(line, "\tPCDATA\t$0, $"); ok {
			marked = strings.TrimSpace(mark) == "-2"
			if holds && !marked {
				t.Errorf("%s holds its slot where it can be preempted: %s", in, strings.TrimSpace(line))
			}
		}
		_, callee, ok := strings.Cut(line, "\tCALL\t")
		if !ok {
			continue
		}
		callee, _, _ = strings.Cut(strings.TrimSpace(callee), "(SB)")
		callee = strings.TrimPrefix(callee, modulePath+"/")
		if !strings.Contains(callee, ".") { // a register: a function value or an interface
			callee = "indirect"
		}
		allowed, known := pinned[in]
		if callee == "runtime.getm" {
			holds = true
			if !marked {
				t.Errorf("%s holds its slot and is not marked go:nosplit", in)
			}
		}
		switch {
		case !known && (callee == "runtime.procPin" || callee == "runtime.getm"):
			t.Errorf("%s pins or holds: add it to the table", in)
		case !known, callee == "runtime.getm", callee == "runtime.procPin", callee == "runtime.procUnpin", strings.HasPrefix(callee, "runtime.morestack"):
		case slices.Contains(strings.Fields(allowed), callee), slices.Contains(strings.Fields(allowed), "unpinned:"+callee):
		default:
			t.Errorf("%s is pinned and calls %s: %s", in, callee, strings.TrimSpace(line))
		}
	}
	for f, calls := range pinned {
		if !seen[f] {
			t.Errorf("the compiler made no function %s", f)
		}
		for _, callee := range strings.Fields(calls) {
			_, known := pinned[callee]
			if !known && strings.Contains(callee, ".") && !strings.HasPrefix(callee, "unpinned:") && !strings.HasPrefix(callee, "runtime.") {
				t.Errorf("%s calls %s while pinned, which is not in the table", f, callee)
			}
		}
	}
}

// pins reports whether f calls percpu.Pin or percpu.Hold.
func pins(f file) (found bool) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && (s.Sel.Name == "Pin" || s.Sel.Name == "Hold") {
			x, ok := s.X.(*ast.Ident)
			found = found || ok && x.Name == "percpu"
		}
		return !found
	})
	return found
}
