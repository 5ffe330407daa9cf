package render

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/grafana/regexp"
)

// TestAutomatonIsTheExpression steps through the tokens of random names and compares the
// result with the regular expression.
func TestAutomatonIsTheExpression(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	compared := 0
	patterns := []string{"(a|b*)*(c|1)$", "^(a?|b)*svc", "(x*|(a|b)*)*c$", "(a|)(b|)(c|)$", "^((a|b)|(b|c))+$"}
	for range 2000 {
		patterns = append(patterns, randomPattern(r, 3))
	}
	for _, pattern := range patterns {
		f := newFilter(t, RE2, pattern, FilterLimits{Match: time.Hour})
		if f.prog == nil {
			continue
		}
		a, re := newAutomaton(f.prog), regexp.MustCompile(pattern)
		for range 20 {
			name, ok := randomName(r), true
			st := a.first
			for i, token := range strings.Split(name, ".") {
				if st <= stateYes {
					break
				}
				if st, ok = a.step(st, []byte(token), i == 0); !ok {
					break // too many states
				}
			}
			if !ok {
				continue
			}
			compared++
			if got, want := a.states[st].atEnd, re.MatchString(name); got != want {
				t.Fatalf("%s on %s: %t, want %t", pattern, name, got, want)
			}
		}
	}
	if compared < 10_000 {
		t.Errorf("only %d names were compared", compared)
	}
}

// TestAutomatonWithoutStatesForBytes steps through long tokens under a pattern that needs a
// state for each of their last eight bytes' values, and through text that is not ASCII.
func TestAutomatonWithoutStatesForBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	const pattern = "é?a[abé]{7}$"
	f := newFilter(t, RE2, pattern, FilterLimits{Match: time.Hour})
	a, re := newAutomaton(f.prog), regexp.MustCompile(pattern)
	matched, stuck := 0, 0
	for range 5000 {
		text := make([]rune, 30)
		for i := range text {
			text[i] = []rune("ababababé")[r.IntN(9)]
		}
		st, ok := a.step(a.first, []byte(string(text)), true)
		if !ok {
			stuck++
			continue
		}
		want := re.MatchString(string(text))
		if a.states[st].atEnd != want {
			t.Fatalf("%s on %s: %t, want %t", pattern, string(text), !want, want)
		}
		if want {
			matched++
		}
	}
	if len(a.states) < byteStates || matched < 100 || stuck > 4000 {
		t.Errorf("%d states, %d names matched, %d had no state", len(a.states), matched, stuck)
	}
}
