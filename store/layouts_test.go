package store

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/histogram"
)

// TestFormsOfHistograms: all fields of a form apply, and buckets only if it has some.
func TestFormsOfHistograms(t *testing.T) {
	form := HistogramForm{
		Scale: 10, Buckets: []float64{1, 2}, Quantiles: []float64{0.5}, Window: time.Minute,
		Steps: 3, NativeFactor: 1.5, NativeBuckets: 160,
	}
	if err := form.Check(); err != nil {
		t.Error(err)
	}
	got := histogram.Config{Unit: Bytes, SignificantDigits: 4, Bounds: []float64{7}}
	form.apply(&got)
	want := histogram.Config{
		Unit: Bytes, SignificantDigits: 4, Scale: 10, Bounds: []float64{1, 2}, Quantiles: []float64{0.5},
		Window: time.Minute, Steps: 3, NativeFactor: 1.5, NativeBuckets: 160,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the form makes %+v, want %+v", got, want)
	}
	got = histogram.Config{Bounds: []float64{7}}
	new(HistogramForm).apply(&got)
	if want := (histogram.Config{Bounds: []float64{7}}); !reflect.DeepEqual(got, want) {
		t.Errorf("an empty form makes %+v, want %+v", got, want)
	}
	if err := (&HistogramForm{Steps: 101}).Check(); err == nil {
		t.Error("a form with too many steps is valid")
	}
}

// TestHistogramsOfInvalidForms have the defaults, and the unit where that is valid.
func TestHistogramsOfInvalidForms(t *testing.T) {
	for name, tt := range map[string]struct {
		form    HistogramForm
		network bool
		unit    Unit
		want    Unit
		divisor float64
	}{
		"buckets":          {HistogramForm{Buckets: []float64{-1}}, false, Bytes, Bytes, 1},
		"network buckets":  {HistogramForm{Buckets: []float64{-1}}, true, Milliseconds, Milliseconds, networkScale},
		"scale":            {HistogramForm{Scale: -1}, false, Bytes, Unspecified, 1},
		"scale of network": {HistogramForm{Scale: -1}, true, Bytes, Bytes, networkScale},
	} {
		st := New(Options{})
		sc := st.ScopeWith("", ScopeOptions{Network: tt.network, Histograms: &tt.form})
		l := sc.Histogram("h", tt.unit).Layout()
		defaults := histogram.DefaultBounds(tt.want)
		if l.Unit() != tt.want || l.Divisor() != tt.divisor || !reflect.DeepEqual(l.Bounds(), defaults) || l.SignificantDigits() != 2 {
			t.Errorf("%s: unit %v, divisor %v, bounds %v", name, l.Unit(), l.Divisor(), l.Bounds())
		}
		if other := sc.Histogram("other", tt.unit).Layout(); other != l {
			t.Errorf("%s: equal histograms do not share a layout", name)
		}
		if other := sc.WithHistograms(&HistogramForm{Buckets: []float64{3}}).Histogram("third", tt.unit).Layout(); other == l {
			t.Errorf("%s: histograms of another form share a layout", name)
		}
	}
}

// TestEqualFormsShareALayout: a program that makes a form for each call keeps the first.
func TestEqualFormsShareALayout(t *testing.T) {
	st := New(Options{})
	layouts := make(map[*histogram.Layout]bool)
	for i := range 100 {
		form := &HistogramForm{Buckets: []float64{1, 2.5}, Window: time.Minute}
		layouts[st.Root().WithHistograms(form).Histogram(fmt.Sprint("h", i), Bytes).Layout()] = true
		st.ScopeWith("s", ScopeOptions{Histograms: form}).Close()
	}
	if len(layouts) != 1 || len(st.layouts) != 1 || len(st.forms) != 1 {
		t.Errorf("%d layouts, %d kept, %d forms; want one of each", len(layouts), len(st.layouts), len(st.forms))
	}
	empty, none := &HistogramForm{Buckets: []float64{}}, &HistogramForm{}
	if st.sharedForm(empty) == st.sharedForm(none) || st.sharedForm(nil) != nil {
		t.Error("forms without buckets and with the default ones are taken for equal")
	}
}

// TestChangedFormIsAnotherForm: a program can change its form after it made a scope with it.
func TestChangedFormIsAnotherForm(t *testing.T) {
	st := New(Options{})
	form := &HistogramForm{Buckets: []float64{1, 2}}
	before := st.Root().WithHistograms(form)
	form.Buckets[1] = 3
	after := st.Root().WithHistograms(form)
	for _, tt := range []struct {
		sc   *Scope
		want string
	}{{after, "[1 3]"}, {before, "[1 2]"}} {
		if got := fmt.Sprint(tt.sc.Histogram(tt.want, Bytes).Layout().Bounds()); got != tt.want {
			t.Errorf("bounds %s, want %s", got, tt.want)
		}
	}
}
