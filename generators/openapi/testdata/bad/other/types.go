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

// Spoke has a marker.
type Spoke struct {
	// +permission-verb:"example.com/length"
	Length int32 `json:"length"`
}

// Wheel has lists of a fixed length.
type Wheel struct {
	Spokes map[string]*[2]Spoke `json:"spokes"`
}

// Names are names that have a marker.
// +permission-verb:"example.com/names"
type Names = []string

// Sign has a type with another name.
type Sign struct {
	Names Names `json:"names"`
}
