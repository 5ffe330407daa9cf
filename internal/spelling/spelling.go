// Package spelling finds the name that a misspelled one was probably meant to be.
package spelling

import "iter"

// Nearest returns the name that needs the fewest changed bytes, at most limit, to become
// word. It returns "" if there is none.
func Nearest(word string, names iter.Seq[string], limit int) (nearest string) {
	for name := range names {
		if d := distance(word, name); d <= limit {
			nearest, limit = name, d-1
		}
	}
	return nearest
}

// distance returns the number of bytes to insert, delete or replace to turn a into b
// (Levenshtein 1966).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
