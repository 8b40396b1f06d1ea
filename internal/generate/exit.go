package generate

import "strings"

// These are the exit codes of fieldperm-gen lint. The other commands end with 1 for every error.
const (
	exitFindings = 1
	exitInput    = 2
)

// exit is an error with an exit code of its own. Each of its errors is printed on a line; with none, the command has said enough.
type exit struct {
	code int
	errs []error
}

func (e *exit) Error() string {
	var texts []string
	for _, err := range e.errs {
		texts = append(texts, err.Error())
	}
	return strings.Join(texts, "\n")
}
