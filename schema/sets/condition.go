package sets

import (
	"fmt"

	celgo "github.com/google/cel-go/cel"

	"github.com/fieldperm/fieldperm/schema/internal/dialect"
)

// condition is a match condition of an UncoveredPermissionSet. Conditions with the same text have the same program.
type condition struct{ program celgo.Program }

// newCondition compiles a match condition. It reads the request without its objects. The error says so if an API server would let a match condition
// read what this one reads.
func newCondition(expression string) (*condition, error) {
	program, err := dialect.Request.Compile(expression, celgo.BoolType)
	if err == nil {
		return &condition{program}, nil
	}
	if _, onObjects := dialect.Objects.Compile(expression, celgo.BoolType); onObjects == nil {
		return nil, fmt.Errorf("expression %q reads more than the request without its objects: name users, groups, operations, names or namespaces; what depends on objects is a ConditionalPolicy of effect Deny", expression)
	}
	return nil, err
}
