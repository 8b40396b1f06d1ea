// Package spelling finds the name that a misspelt one was meant to be. It imports nothing of fieldperm. Start at Nearest.
package spelling

import "strings"

// longest bounds the names that are compared, in bytes: the time is quadratic in their length.
const longest = 100

// Nearest returns the known name that is meant by one that does not exist, "" if none is near: at most every third
// character of the shorter one may be missing, wrong or too much, whatever the case. The first of the nearest wins.
func Nearest(name string, known []string) string {
	best, distance := "", longest
	for _, candidate := range known {
		if d := edits(strings.ToLower(name), strings.ToLower(candidate)); d < distance && d <= max(1, min(len(name), len(candidate))/3) {
			best, distance = candidate, d
		}
	}
	return best
}

// edits counts the bytes to insert, delete or replace between two names (Levenshtein).
func edits(a, b string) int {
	if len(a) > longest || len(b) > longest {
		return longest
	}
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
			diagonal, row[j+1] = row[j+1], min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
