package layers

import (
	"fmt"
	"strconv"
	"testing"
)

func BenchmarkRead(b *testing.B) {
	values := make(map[string]any)
	for i := range 1000 {
		values["some.feature.number_"+strconv.Itoa(i)] = float64(i % 100)
	}
	l, err := New(Config{Layers: []Layer{{Name: "s", Kind: Static, Values: values}}})
	if err != nil {
		b.Fatal(err)
	}
	const key = "some.feature.number_500"
	b.Run("what=snapshot", func(b *testing.B) {
		for b.Loop() {
			l.Snapshot()
		}
	})
	b.Run("what=int", func(b *testing.B) {
		for b.Loop() {
			l.Snapshot().Uint(key, 0)
		}
	})
	b.Run("what=bool", func(b *testing.B) {
		for b.Loop() {
			l.Snapshot().Bool(key, false)
		}
	})
	b.Run("what=feature", func(b *testing.B) {
		for b.Loop() {
			l.Snapshot().FractionalPercent(key, FractionalPercent{}).Enabled(7)
		}
	})
	b.Run("what=missing", func(b *testing.B) {
		for b.Loop() {
			l.Snapshot().Uint("no.such.key", 0)
		}
	})
}

// BenchmarkModify changes one override at a time, or sets and removes a new one.
func BenchmarkModify(b *testing.B) {
	for _, n := range []int{10, 1000, 9990} {
		l, keys := manyOverrides(b, n)
		for what, change := range map[string]func(i int) map[string]string{
			"change": func(i int) map[string]string { return map[string]string{keys[i%n]: strconv.Itoa(i)} },
			"new":    func(i int) map[string]string { return map[string]string{"new." + keys[i/2%n]: "x"[i%2:]} },
		} {
			b.Run(fmt.Sprintf("overrides=%d/what=%s", n, what), func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					if err := l.Modify(change(i)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
