package schema

// nearest returns the name that a misspelt one was probably meant to be, "" if none is near: at most one
// character in three is different.
func nearest(name string, known []string) string {
	best, distance := "", max(len(name)/3, 1)+1
	for _, candidate := range known {
		if d := editDistance(name, candidate); d < distance {
			best, distance = candidate, d
		}
	}
	return best
}

// editDistance counts the characters to add, leave out or replace (Levenshtein).
func editDistance(a, b string) int {
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
