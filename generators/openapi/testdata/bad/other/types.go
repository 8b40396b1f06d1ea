// Package other is not among the paths.
package other

// Lock is a lock.
type Lock struct {
	// +permission-verb:"example.com/code"
	Code string `json:"code"`
}

// Door has a lock.
type Door struct {
	Lock Lock `json:"lock"`
}

// Colors are colors.
// +permission-verb:"example.com/colors"
type Colors []string
