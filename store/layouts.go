package store

import (
	"fmt"
	"math"
	"slices"

	"github.com/statsd-admin/statsd-admin/histogram"
)

// layoutKey identifies a layout that histograms share.
type layoutKey struct {
	setting int // index in Options.Histograms, -1 for none
	unit    Unit
	network bool
	form    *HistogramForm
}

// sharedForm returns the copy of f that all equal forms share, nil for nil. Store.mu must
// be held.
func (s *Store) sharedForm(f *HistogramForm) *HistogramForm {
	if f == nil {
		return nil
	}
	text := fmt.Sprintf("%#v", *f)
	if s.forms[text] == nil {
		own := *f // the caller can change its own
		own.Buckets, own.Quantiles = slices.Clone(f.Buckets), slices.Clone(f.Quantiles)
		s.forms[text] = &own
	}
	return s.forms[text]
}

// networkScale keeps six decimals of values from network input, as clients send
// that measure microseconds in seconds.
const networkScale = 1_000_000

// NetworkMax is the largest magnitude in histograms from network input. Larger
// values are recorded as NetworkMax.
const NetworkMax = float64(math.MaxInt64) / networkScale

// layoutFor returns the layout for a histogram that is being created.
// Store.mu must be held.
func (s *Store) layoutFor(name string, unit Unit, network bool, form *HistogramForm) *histogram.Layout {
	k := layoutKey{-1, unit, network, form}
	for i, set := range s.opts.Histograms {
		if set.Match != nil && set.Match(name) {
			k.setting = i
			break
		}
	}
	if l := s.layouts[k]; l != nil {
		return l
	}
	cfg := histogram.Config{Unit: unit}
	if k.setting >= 0 {
		cfg.Bounds = s.opts.Histograms[k.setting].Buckets
		cfg.SignificantDigits = s.opts.Histograms[k.setting].SignificantDigits
	}
	if form != nil {
		form.apply(&cfg)
	}
	if network {
		cfg.Scale, cfg.Signed = networkScale, true
	}
	l, err := histogram.NewLayout(cfg)
	if err != nil {
		// HistogramSetting.Check reports invalid settings. Values must not be
		// lost because of one.
		cfg = histogram.Config{Unit: cfg.Unit, Scale: cfg.Scale, Signed: cfg.Signed}
		if l, err = histogram.NewLayout(cfg); err != nil {
			l = defaultLayout()
		}
	}
	s.layouts[k] = l
	return l
}

// defaultLayout returns the layout of the zero configuration.
func defaultLayout() *histogram.Layout {
	l, err := histogram.NewLayout(histogram.Config{})
	if err != nil {
		panic("store: the default histogram layout is refused: " + err.Error())
	}
	return l
}

// Check returns an error if the setting is invalid. A store uses the defaults in
// place of an invalid setting.
func (h HistogramSetting) Check() error {
	_, err := histogram.NewLayout(histogram.Config{Bounds: h.Buckets, SignificantDigits: h.SignificantDigits})
	return err
}
