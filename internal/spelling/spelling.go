// Package spelling finds the name that a misspelled one was probably meant to be.
package spelling

import "iter"

// Nearest returns the name that needs the fewest changes, at most limit, to become word.
// A change is a byte more, less or other, or two neighbors exchanged. It returns "" if there is none.
func Nearest(word string, names iter.Seq[string], limit int) (nearest string) {
	for name := range names {
		if max(len(word)-len(name), len(name)-len(word)) > limit {
			continue // a word can be much longer than all names
		}
		if d := Distance(word, name); d <= limit {
			nearest, limit = name, d-1
		}
	}
	return nearest
}

// Distance returns the number of bytes to insert, delete or replace, and of neighbors to
// exchange, to turn a into b. No byte is changed twice (optimal string alignment).
func Distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range len(b) {
			cost := last[j]
			if a[i] != b[j] {
				cost++
			}
			row[j+1] = min(cost, row[j]+1, last[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
