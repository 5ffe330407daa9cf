package guard

import (
	"fmt"
	"testing"
)

func TestRun(t *testing.T) {
	var told []string
	g := Told(func(where string, v any) { told = append(told, fmt.Sprint(where, " ", v)) })
	calm, wild := func() {}, func() { panic("boom") }
	if !g.Run("calm", calm) || g.Run("wild", wild) || Told(nil).Run("nobody", wild) || !Told(nil).Run("calm", calm) {
		t.Error("panics are not told apart")
	}
	if len(told) != 1 || told[0] != "wild boom" {
		t.Errorf("told %q", told)
	}
}
