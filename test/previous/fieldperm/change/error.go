package change

import "fmt"

// InvalidObjectError is the error for an object that is not JSON or does not fit its schema. It is not a denial.
type InvalidObjectError struct {
	// Path is the place of the fault, "" for the object as a whole.
	Path string
	// Message describes the fault and ends with the cure.
	Message string
}

func (e *InvalidObjectError) Error() string {
	if e.Path == "" {
		return "object: " + e.Message
	}
	return "object: " + e.Path + ": " + e.Message
}

// Stopped returns the error of a comparison that was interrupted. It is not a decision.
func Stopped(err error) error {
	return fmt.Errorf("comparison of the objects: %w before its end: try again, or with a smaller object", err)
}
