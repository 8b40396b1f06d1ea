// Package spelling finds the known name that is closest to a misspelt one. It imports nothing of fieldperm. Start at Nearest.
package spelling

import "strings"

// longest bounds the length in bytes of the names that are compared, because the time is quadratic in the length.
const longest = 100

// Nearest returns the known name that is closest to name, "" if none is close. A name is close if at most every third character of
// the shorter name is missing, wrong or added, ignoring case. Of several equally close names the first is returned.
func Nearest(name string, known []string) string {
	best, distance, lower := "", longest, strings.ToLower(name)
	for _, candidate := range known {
		other := strings.ToLower(candidate)
		if len(lower) > longest || len(other) > longest {
			continue
		}
		if d := Edits(lower, other); d < distance && d <= max(1, min(len(name), len(candidate))/3) {
			best, distance = candidate, d
		}
	}
	return best
}

// Edits returns how many bytes must be inserted, deleted or replaced to turn a into b (Levenshtein distance). Its time is the product of
// the lengths.
func Edits(a, b string) int {
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
