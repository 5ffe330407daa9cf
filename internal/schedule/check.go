//go:build schedule

package schedule

import "testing"

// Bind returns programs whose steps act on one trial.
func Bind[T any, F ~func(T)](trial T, programs [][]F) []func() {
	all := make([]func(), len(programs))
	for i, steps := range programs {
		all[i] = func() {
			for _, step := range steps {
				step(trial)
			}
		}
	}
	return all
}

// Check explores the schedules of a trial in a subtest, as [Explore] does, and returns
// their number.
func Check(t *testing.T, name string, preemptions int, trial func() Trial) (explored int) {
	t.Run(name, func(t *testing.T) {
		n, err := Explore(preemptions, trial)
		if err != nil {
			t.Errorf("after %d schedules: %v", n, err)
		}
		t.Logf("%d schedules", n)
		explored = n
	})
	return explored
}
