package numfmt

import (
	"math"
	"testing"
	"time"
)

func joined(number, unit string) string { return number + " " + unit }

func TestNumbers(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{Grouped("0"), "0"}, {Grouped("999"), "999"}, {Grouped("1000"), "1,000"}, {Grouped("-1234567.125"), "\u22121,234,567.125"},
		{Grouped("18446744073709551615"), "18,446,744,073,709,551,615"}, {Grouped("text"), "text"}, {Grouped(""), ""}, {Grouped("1e+21"), "1e+21"},
		{Significant(0.012345), "0.0123"}, {Significant(12.345), "12.3"}, {Significant(123456), "123,456"}, {Significant(-2.5), "\u22122.5"},
		{Significant(math.NaN()), None}, {Significant(1e300), "1e+300"}, {Rate(9999.94), "9,999.9"}, {Rate(0), "0"}, {Rate(12345.6), "12,346"},
		{Significant(0), "0"}, {Significant(999.5), "1,000"}, {Significant(100), "100"}, {Significant(99.94), "99.9"}, {Significant(10), "10"},
		{Significant(9.996), "10"}, {Significant(1), "1"}, {Significant(0.1), "0.1"}, {Significant(1e-6), "0.000001"}, {Significant(9e-7), "9e-07"},
		{Significant(999999999999999), "999,999,999,999,999"}, {Significant(1e15), "1e+15"}, {Significant(math.Inf(-1)), "-Inf"}, {Rate(10_000), "10,000"},
		{Rate(0.04), "0.0"}, {Rate(1234.5), "1,234.5"}, {Difference("5", "7"), "-2"}, {Difference("18446744073709551615", "1"), "18446744073709551614"},
		{Difference("1.5", "1"), "0.5"}, {Difference("x", "1"), ""}, {Difference("1", ""), ""}, {Difference("9223372036854775807", "-1"), "9223372036854775808"}, {Difference("-2", "9223372036854775807"), "-9223372036854775809"}, {Signed(""), None}, {Signed("0"), "0"},
		{joined(Size(1536)), "1.5 KiB"}, {joined(Size(1023)), "1,023 B"}, {joined(Size(1024)), "1 KiB"}, {joined(Size(-1024)), "\u22121 KiB"}, {joined(Size(1 << 71)), "2,048 EiB"}, {joined(Measured(8.21, "milliseconds")), "8.21 ms"},
		{joined(Measured(9.99, "seconds")), "9,990 ms"}, {joined(Measured(10, "seconds")), "10 s"}, {joined(Measured(0.5, "percent")), "50 %"}, {joined(Measured(7, "")), "7 "},
		{joined(Measured(250, "microseconds")), "250 µs"}, {joined(Measured(math.NaN(), "bytes")), "– "}, {joined(Seconds(0)), "0 ms"}, {joined(Seconds(-0.00099)), "\u2212990 µs"},
		{Signed("-1000"), "\u22121,000"}, {Signed("1000"), "+1,000"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

// TestAges expects ages in their greatest unit, rounded down.
func TestAges(t *testing.T) {
	const day = 24 * time.Hour
	for d, want := range map[time.Duration]string{0: "now", time.Second - 1: "now", time.Second: "1 s", time.Minute - 1: "59 s", time.Minute: "1 min", time.Hour - 1: "59 min",
		time.Hour: "1 h", day - 1: "23 h", day: "1 d", 2*day - 1: "1 d"} {
		if got := Age(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

func TestSpans(t *testing.T) {
	for d, want := range map[time.Duration]string{50 * time.Hour: "2 d 2 h", 24 * time.Hour: "1 d 0 h", 24*time.Hour - time.Second: "23 h 59 min", time.Hour: "1 h 0 min", 61 * time.Second: "1 min 1 s",
		time.Minute: "1 min 0 s", 59 * time.Second: "59 s", time.Second - time.Millisecond: "0 s", -time.Second: "\u22121 s"} {
		if got := Span(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

// TestUnitOf expects a value divided by the unit of its text to be the number in it.
func TestUnitOf(t *testing.T) {
	for _, unit := range []string{"", "bytes", "microseconds", "milliseconds", "percent"} {
		for _, x := range []float64{0, 0.5, 7, 640, 2048, 5e6, 3e9} {
			number, symbol := Measured(x, unit)
			if got := Significant(x / UnitOf(unit, symbol)); got != number {
				t.Errorf("%v %s: %s, want %s %s", x, unit, got, number, symbol)
			}
		}
	}
}
