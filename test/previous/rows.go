package previous

// Row is a class of differences that is wanted.
type Row struct {
	// Name is a short name for reports.
	Name string
	// Looser is the direction.
	Looser bool
	// Reason says why, and for a looser class what warns instead.
	Reason string
	// Is reports whether a difference is of the class.
	Is func(Difference) bool
}

// Rows returns all classes. The first one that describes a difference counts.
func Rows() []Row { return nil }

// Tally counts differences by row.
type Tally map[string]int

// Add counts the differences of one write, and returns those that no row describes.
func (t Tally) Add(differences []Difference) (unexplained []Difference) {
next:
	for _, d := range differences {
		for _, r := range Rows() {
			if r.Looser == d.Looser && r.Is(d) {
				t[r.Name]++
				continue next
			}
		}
		unexplained = append(unexplained, d)
	}
	return unexplained
}
