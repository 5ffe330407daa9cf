package admin

import (
	"crypto/sha256"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// BenchmarkTokenTiming checks whether the time of a refusal reveals anything
// about the tokens. Two kinds of attempts take turns in random order, 10,000 of
// each, and Welch's t-test compares how long they take: p is how likely such a
// difference is if there is none. A p below 0.01, again and again, is a leak:
//
//		go test ./admin -run '^$' -bench TokenTiming -benchtime 1x -count 5
//
//	  - secret: a wrong secret differs from a right one in its first or its last byte.
//	  - digest: its digest differs from the tokens' digests in the first or last byte.
//	  - listener: a right secret is that of the first or the last token.
func BenchmarkTokenTiming(b *testing.B) {
	const many = 200
	right, wrong := secret(RoleRead), "a-secret-that-is-of-no-token"
	list := make([]Token, many) // the tokens change in their place, so that memory makes no difference
	tokens := NewTokens()
	tokens.Set(list)
	fill := func(digest [sha256.Size]byte) {
		for i := range list {
			list[i] = Token{Role: RoleRead, Digest: digest}
		}
	}
	for _, tt := range []struct {
		name    string
		prepare func(first bool) (secret string)
	}{
		{"secret", func(first bool) string {
			fill(sha256.Sum256([]byte(right)))
			if first {
				return "X" + right[1:]
			}
			return right[:len(right)-1] + "X"
		}},
		{"digest", func(first bool) string {
			digest := sha256.Sum256([]byte(wrong))
			if first {
				digest[0] ^= 1
			} else {
				digest[sha256.Size-1] ^= 1
			}
			fill(digest)
			return wrong
		}},
		{"place", func(first bool) string {
			fill(sha256.Sum256([]byte(wrong)))
			at := many - 1
			if first {
				at = 0
			}
			list[at].Digest = sha256.Sum256([]byte(right))
			return right
		}},
	} {
		b.Run("differ="+tt.name, func(b *testing.B) {
			for b.Loop() {
				t, p := compare(10_000, func(first bool) time.Duration {
					secret := tt.prepare(first)
					start := time.Now()
					tokens.find(secret)
					return time.Since(start)
				})
				b.ReportMetric(t, "t")
				b.ReportMetric(p, "p")
			}
		})
	}
}

// compare measures two kinds of attempts and returns Welch's t, and p under a normal
// distribution, since the samples are large. It discards the slowest tenth of each
// kind, which was disturbed by other work.
func compare(n int, attempt func(first bool) time.Duration) (t, p float64) {
	times := map[bool][]float64{}
	for range n {
		which := rand.IntN(2) == 0
		for _, first := range [2]bool{which, !which} {
			times[first] = append(times[first], float64(attempt(first)))
		}
	}
	mean, square := map[bool]float64{}, 0.0 // square: of the error of the difference
	for first, list := range times {
		slices.Sort(list)
		list = list[:len(list)*9/10]
		for _, x := range list {
			mean[first] += x / float64(len(list))
		}
		for _, x := range list {
			square += (x - mean[first]) * (x - mean[first]) / float64(len(list)-1) / float64(len(list))
		}
	}
	t = (mean[true] - mean[false]) / math.Sqrt(square)
	return t, math.Erfc(math.Abs(t) / math.Sqrt2)
}
