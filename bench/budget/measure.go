package budget

import (
	"fmt"
	"io"
	"maps"
	"strings"
)

// Run measures the benchmarks with the given names once and returns their output. It
// may contain further benchmarks.
type Run func(names []string) (Round, error)

// Report is the result of measuring a budget.
type Report struct {
	Verdicts []Verdict // in the order of the budget
	// Retried lists the bounds that were measured a second time because the first
	// attempt was noisy. Their verdicts cover all rounds.
	Retried []Bound
}

// DefaultRounds is the default number of rounds.
const DefaultRounds = 6

// Measure runs rounds of all benchmarks that b needs and judges them. Doubtful bounds
// get as many rounds again. rounds below 1 means [DefaultRounds].
func Measure(b *Budget, rounds int, run Run) (*Report, error) {
	if rounds < 1 {
		rounds = DefaultRounds
	}
	all, err := measure(b, rounds, run)
	if err != nil {
		return nil, err
	}
	rep := &Report{Verdicts: Judge(b, all)}
	for _, v := range rep.Verdicts {
		if v.Noisy() {
			rep.Retried = append(rep.Retried, v.Bound)
		}
	}
	if len(rep.Retried) == 0 {
		return rep, nil
	}
	again := &Budget{Bounds: rep.Retried}
	more, err := measure(again, rounds, run)
	if err != nil {
		return nil, err
	}
	for i, v := range rep.Verdicts {
		if v.Noisy() {
			rep.Verdicts[i] = judge(v.Bound, append(all[:rounds:rounds], more...))
		}
	}
	return rep, nil
}

// measure runs rounds, each of which runs all groups in sequence.
func measure(b *Budget, rounds int, run Run) ([]Round, error) {
	all := make([]Round, rounds)
	for i := range all {
		all[i] = Round{}
		for _, names := range b.groups() {
			r, err := run(names)
			if err != nil {
				return nil, fmt.Errorf("budget: round %d of %d: %w", i+1, rounds, err)
			}
			maps.Copy(all[i], r)
		}
	}
	return all, nil
}

// Failed returns the verdicts that count as broken.
func (r *Report) Failed() []Verdict {
	var failed []Verdict
	for _, v := range r.Verdicts {
		if v.Failed() {
			failed = append(failed, v)
		}
	}
	return failed
}

// uncertain returns the number of uncertain verdicts.
func (r *Report) uncertain() (n int) {
	for _, v := range r.Verdicts {
		if v.State == Uncertain {
			n++
		}
	}
	return n
}

// Write writes one line per bound and a summary of the broken ones.
func (r *Report) Write(w io.Writer) error {
	var s strings.Builder
	width := 0
	for _, v := range r.Verdicts {
		width = max(width, len(v.Benchmark))
	}
	for _, v := range r.Verdicts {
		fmt.Fprintf(&s, "%-9s  %-*s  ", v.State, width, v.Benchmark)
		v.describe(&s)
		s.WriteByte('\n')
	}
	if len(r.Retried) > 0 {
		fmt.Fprintf(&s, "\nnoisy at first, so measured a second time:\n")
		for _, b := range r.Retried {
			fmt.Fprintf(&s, "  %s %s\n", b.Benchmark, b.Unit)
		}
	}
	failed := r.Failed()
	if len(failed) == 0 {
		fmt.Fprintf(&s, "\nall %d bounds hold", len(r.Verdicts))
		if n := r.uncertain(); n > 0 {
			fmt.Fprintf(&s, ", %d of them by the median and not for certain", n)
		}
		s.WriteByte('\n')
	} else {
		fmt.Fprintf(&s, "\n%d of %d bounds are broken:\n", len(failed), len(r.Verdicts))
	}
	for _, v := range failed {
		fmt.Fprintf(&s, "  line %d: %s: ", v.Line, v.Benchmark)
		switch {
		case v.State == Missing:
			fmt.Fprintf(&s, "%s was not measured", v.Unit)
		case v.Limit == 0:
			fmt.Fprintf(&s, "%s is %s, none is allowed", v.Unit, number(v.Median))
		default:
			fmt.Fprintf(&s, "%s is %.0f%% over its bound", v.Unit, 100*v.Over())
		}
		if v.State == Uncertain {
			s.WriteString(" by the median, and not certain")
		}
		s.WriteByte('\n')
	}
	_, err := io.WriteString(w, s.String())
	return err
}

// describe writes the figures of a verdict.
func (v Verdict) describe(s *strings.Builder) {
	if v.State == Missing {
		fmt.Fprintf(s, "%s not measured (%s)", v.Unit, v.Bound)
		return
	}
	fmt.Fprintf(s, "%s %s", v.Unit, number(v.Median))
	if v.Low != v.High {
		fmt.Fprintf(s, " [%s, %s]", number(v.Low), number(v.High))
	}
	fmt.Fprintf(s, " of %s", number(v.Limit))
	if v.Calibration != "" {
		fmt.Fprintf(s, " x %s", v.Calibration)
	}
	fmt.Fprintf(s, ", %d rounds", v.Rounds)
}

// number formats x with three significant digits.
func number(x float64) string {
	switch {
	case x >= 100 || x == float64(int64(x)):
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	case x >= 1:
		return fmt.Sprintf("%.2f", x)
	}
	return fmt.Sprintf("%.3f", x)
}
