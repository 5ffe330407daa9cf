package layers

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStaticValues(t *testing.T) {
	l := mustNew(t, Config{Layers: []Layer{{Name: "s", Kind: Static, Values: map[string]any{
		"number": 5.0, "quarter": 0.25, "million": 1e6, "long": 1234567.0, "third": 1.0 / 3, "minus": -1.5, "round": 1.5000001,
		"whole": 7, "big": uint64(math.MaxUint64), "yes": true, "no": false, "text": "t",
		"fraction": map[string]any{"numerator": 5.0, "denominator": "TEN_THOUSAND"},
		"odd":      map[string]any{"numerator": 5.0, "other": 1.0},
		"half":     map[string]any{"numerator": 0.5},
		"none":     map[string]any{},
		"deep":     map[string]any{"er": map[string]any{"est": 1.0}},
	}}}})
	want := `["s"]
big: ["1.84467e+19"] = "1.84467e+19"
deep.er.est: ["1"] = "1"
fraction: ["{\"denominator\":\"TEN_THOUSAND\",\"numerator\":5}"] = "{\"denominator\":\"TEN_THOUSAND\",\"numerator\":5}"
half: ["{\"numerator\":0.5}"] = "{\"numerator\":0.5}"
long: ["1.23457e+06"] = "1.23457e+06"
million: ["1e+06"] = "1e+06"
minus: ["-1.5"] = "-1.5"
no: ["false"] = "false"
none: ["{}"] = "{}"
number: ["5"] = "5"
odd: ["{\"numerator\":5,\"other\":1}"] = "{\"numerator\":5,\"other\":1}"
quarter: ["0.25"] = "0.25"
round: ["1.5"] = "1.5"
text: ["t"] = "t"
third: ["0.333333"] = "0.333333"
whole: ["7"] = "7"
yes: ["true"] = "true"
`
	s := l.Snapshot()
	if diff := cmp.Diff(want, dump(s)); diff != "" {
		t.Error(diff)
	}
	if s.Uint("long", 0) != 1234567 || s.Uint("big", 0) != math.MaxUint64 || s.Float("third", 0) != 1.0/3 {
		t.Error("numbers lost digits that only the text loses")
	}
	other := FractionalPercent{1, Million}
	if s.FractionalPercent("fraction", other) != (FractionalPercent{5, TenThousand}) || s.FractionalPercent("odd", other) != other ||
		s.FractionalPercent("half", other) != other || s.FractionalPercent("none", other) != (FractionalPercent{0, Hundred}) {
		t.Error("fractions wrong")
	}
}

// TestKeyOfTwoNames expects the same value each time, and not that of either name in the
// order of a map.
func TestKeyOfTwoNames(t *testing.T) {
	for range 20 {
		l := mustNew(t, Config{Layers: []Layer{{Name: "s", Kind: Static, Values: map[string]any{
			"a": map[string]any{"b": 1.0}, "a.b": 2.0, "c": map[string]any{"d.e": 4.0, "d": map[string]any{"e": 3.0}},
		}}}})
		if s := l.Snapshot(); s.Uint("a.b", 0) != 2 || s.Uint("c.d.e", 0) != 4 {
			t.Fatal(dump(s))
		}
	}
}
