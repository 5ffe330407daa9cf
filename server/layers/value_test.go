package layers

import (
	"math"
	"testing"
)

func TestTextValues(t *testing.T) {
	const missing = -7.5
	tests := []struct {
		raw                string
		boolean, isBool    bool
		integer            uint64
		isInteger          bool
		double             float64 // missing: none
		fraction           FractionalPercent
		isFractionOrNumber bool
	}{
		{raw: "", double: missing},
		{raw: " ", double: missing},
		{raw: "hello", double: missing},
		{raw: "true", boolean: true, isBool: true, double: missing},
		{raw: "FaLSe", isBool: true, double: missing},
		{raw: "yes", double: missing},
		{raw: "0", isBool: true, isInteger: true, fraction: FractionalPercent{0, 100}, isFractionOrNumber: true},
		{raw: " 5\n", boolean: true, isBool: true, integer: 5, isInteger: true, double: 5, fraction: FractionalPercent{5, 100}, isFractionOrNumber: true},
		{raw: "0.7", isInteger: true, double: 0.7, fraction: FractionalPercent{0, 100}, isFractionOrNumber: true},
		{raw: "3.7", integer: 3, isInteger: true, double: 3.7, fraction: FractionalPercent{3, 100}, isFractionOrNumber: true},
		{raw: "-1", boolean: true, isBool: true, double: -1},
		{raw: "-2.5", double: -2.5},
		{raw: "1e3", boolean: true, isBool: true, integer: 1000, isInteger: true, double: 1000, fraction: FractionalPercent{100, 100}, isFractionOrNumber: true},
		{raw: "18446744073709551615", integer: math.MaxUint64, isInteger: true, double: math.MaxUint64, fraction: FractionalPercent{100, 100}, isFractionOrNumber: true},
		{raw: "9007199254740993", integer: 9007199254740993, isInteger: true, double: 9007199254740992, fraction: FractionalPercent{100, 100}, isFractionOrNumber: true},
		{raw: "1e30", double: 1e30},
		{raw: "1.8446744073709549568e19", boolean: false, integer: 18446744073709549568, isInteger: true, double: 18446744073709549568, fraction: FractionalPercent{100, 100}, isFractionOrNumber: true},
		{raw: "1.8446744073709551616e19", double: 18446744073709551616},
		{raw: "2147483646", boolean: true, isBool: true, integer: math.MaxInt32 - 1, isInteger: true, double: math.MaxInt32 - 1, fraction: FractionalPercent{100, 100}, isFractionOrNumber: true},
		{raw: "2147483647", integer: math.MaxInt32, isInteger: true, double: math.MaxInt32, fraction: FractionalPercent{100, 100}, isFractionOrNumber: true},
		{raw: "-2147483646", boolean: true, isBool: true, double: -math.MaxInt32 + 1},
		{raw: "-2147483647", double: -math.MaxInt32},
		{raw: "0x10", double: missing},
		{raw: "1_000", double: missing},
		{raw: "inf", double: missing},
		{raw: "NaN", double: missing},
		{raw: "5s", double: missing},
		{raw: "numerator: 5\ndenominator: TEN_THOUSAND", double: missing, fraction: FractionalPercent{5, TenThousand}, isFractionOrNumber: true},
		{raw: "{numerator: 5, denominator: MILLION}", double: missing, fraction: FractionalPercent{5, Million}, isFractionOrNumber: true},
		{raw: `{"numerator": "5", "denominator": "HUNDRED"}`, double: missing, fraction: FractionalPercent{5, Hundred}, isFractionOrNumber: true},
		{raw: "{numerator: 5, denominator: 0}", double: missing, fraction: FractionalPercent{5, Hundred}, isFractionOrNumber: true},
		{raw: "{numerator: 5, denominator: 2}", double: missing, fraction: FractionalPercent{5, Million}, isFractionOrNumber: true},
		{raw: "denominator: 1", double: missing, fraction: FractionalPercent{0, TenThousand}, isFractionOrNumber: true},
		{raw: "numerator: 150", double: missing, fraction: FractionalPercent{150, Hundred}, isFractionOrNumber: true},
		{raw: "{}", double: missing, fraction: FractionalPercent{0, Hundred}, isFractionOrNumber: true},
		{raw: "{numerator: 5, , denominator: 1}", double: missing, fraction: FractionalPercent{5, TenThousand}, isFractionOrNumber: true},
		{raw: " \nnumerator: 5\n \ndenominator: 1\n", double: missing, fraction: FractionalPercent{5, TenThousand}, isFractionOrNumber: true},
		{raw: "{numerator: 5}\n", double: missing, fraction: FractionalPercent{5, Hundred}, isFractionOrNumber: true},
		{raw: "numerator: 5, denominator: 1", double: missing},
		{raw: "numerator", double: missing},
		{raw: "numerator: 4294967295", double: missing, fraction: FractionalPercent{math.MaxUint32, Hundred}, isFractionOrNumber: true},
		{raw: "numerator: -5", double: missing},
		{raw: "numerator: 4294967296", double: missing},
		{raw: "numerator: 5\ndenominator: BILLION", double: missing},
		{raw: "numerator: 5\nextra: 1", double: missing},
		{raw: "numerator: 5\nnumerator: 6", double: missing},
		{raw: "{numerator: 5", double: missing},
		{raw: "numerator: 55", double: missing, fraction: FractionalPercent{55, Hundred}, isFractionOrNumber: true}, // no quotes, though the ends are the same
		{raw: "numerator: '5'\ndenominator: \"MILLION\"", double: missing, fraction: FractionalPercent{5, Million}, isFractionOrNumber: true},
		{raw: "numerator: '5\"", double: missing},
		{raw: "numerator: \"", double: missing},
		{raw: "", double: missing},
	}
	fallback := FractionalPercent{77, TenThousand}
	for _, tt := range tests {
		t.Run(tt.raw, func(t *testing.T) {
			l := mustNew(t, Config{Layers: []Layer{{Name: "s", Kind: Static, Values: map[string]any{"k": tt.raw}}}})
			s := l.Snapshot()
			for _, byDefault := range []bool{true, false} {
				want := byDefault
				if tt.isBool {
					want = tt.boolean
				}
				if got := s.Bool("k", byDefault); got != want {
					t.Errorf("Bool = %v, want %v", got, want)
				}
			}
			wantInt := uint64(99)
			if tt.isInteger {
				wantInt = tt.integer
			}
			if got := s.Uint("k", 99); got != wantInt {
				t.Errorf("Int = %d, want %d", got, wantInt)
			}
			if got := s.Float("k", missing); got != tt.double {
				t.Errorf("Double = %v, want %v", got, tt.double)
			}
			wantFraction := fallback
			if tt.isFractionOrNumber {
				wantFraction = tt.fraction
			}
			if got := s.FractionalPercent("k", fallback); got != wantFraction {
				t.Errorf("FractionalPercent = %v, want %v", got, wantFraction)
			}
		})
	}
}

// TestNumbersOfAllTypes expects the text, the whole number and the number of each type of
// Go, at the bounds of what a type holds exactly.
func TestNumbersOfAllTypes(t *testing.T) {
	const none = 9
	for _, tt := range []struct {
		value   any
		text    string
		integer uint64 // none: not a whole number that is at least 0
		double  float64
	}{
		{0.0, "0", 0, 0}, {0.75, "0.75", 0, 0.75}, {-0.5, "-0.5", none, -0.5}, {float32(2.5), "2.5", 2, 2.5},
		{0, "0", 0, 0}, {-1, "-1", none, -1}, {1<<53 + 1, "9.0072e+15", 1<<53 + 1, 1 << 53},
		{int64(0), "0", 0, 0}, {int64(-1), "-1", none, -1}, {int64(1<<53 + 1), "9.0072e+15", 1<<53 + 1, 1 << 53},
		{int32(-7), "-7", none, -7}, {int32(7), "7", 7, 7}, {uint32(8), "8", 8, 8},
		{uint64(0), "0", 0, 0}, {uint64(1<<53 + 1), "9.0072e+15", 1<<53 + 1, 1 << 53}, {float64(1 << 64), "1.84467e+19", none, 1 << 64},
	} {
		l := mustNew(t, Config{Layers: []Layer{{Name: "s", Kind: Static, Values: map[string]any{"k": tt.value}}}})
		text, _ := l.Snapshot().Get("k")
		if integer, double := l.Uint("k", none), l.Float("k", none); text != tt.text || integer != tt.integer || double != tt.double {
			t.Errorf("%T %v: %q, %d, %v; want %q, %d, %v", tt.value, tt.value, text, integer, double, tt.text, tt.integer, tt.double)
		}
	}
}

func TestFractionalPercentEnabled(t *testing.T) {
	l := mustNew(t, Config{Layers: []Layer{{Name: "a", Kind: Admin}}})
	tests := []struct {
		raw  string
		on   []uint64
		off  []uint64
		dflt FractionalPercent
	}{
		{"30", []uint64{0, 29, 100, 129}, []uint64{30, 99, 130}, FractionalPercent{}},
		{"100", []uint64{0, 99, math.MaxUint64}, nil, FractionalPercent{}},
		{"4294967396", []uint64{0, 99}, nil, FractionalPercent{}}, // 2^32+100
		{"0", nil, []uint64{0, 1}, FractionalPercent{100, Hundred}},
		{"{numerator: 1, denominator: TEN_THOUSAND}", []uint64{0, 10000}, []uint64{1, 9999}, FractionalPercent{}},
		{"garbage", []uint64{0}, []uint64{1}, FractionalPercent{1, Million}},
		{"garbage", []uint64{49, 149}, []uint64{50, 150}, FractionalPercent{Numerator: 50}},
	}
	for _, tt := range tests {
		if err := l.Modify(map[string]string{"k": tt.raw}); err != nil {
			t.Fatal(err)
		}
		for _, r := range tt.on {
			if !l.Snapshot().FractionalPercent("k", tt.dflt).Enabled(r) {
				t.Errorf("%q: off for %d", tt.raw, r)
			}
		}
		for _, r := range tt.off {
			if l.Snapshot().FractionalPercent("k", tt.dflt).Enabled(r) {
				t.Errorf("%q: on for %d", tt.raw, r)
			}
		}
	}
}
