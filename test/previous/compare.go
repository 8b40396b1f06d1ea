package previous

import (
	"fmt"
	"slices"
	"strings"
)

// Frozen is the commit of the copies.
const Frozen = "39544b86"

// Generic stands for the generic verbs of a request in a demand: update and patch, or create.
const Generic = "generic"

// Demand is a list of verbs, any one of which is enough for a change.
type Demand struct {
	// Path is the place of the change, for reports.
	Path string
	// AnyOf are the verbs from general to specific, with Generic last if the generic permission is enough. If it is empty, nothing is.
	AnyOf []string
	// Owners: the change is one of owners.
	Owners bool
	// Instead is the cure that a message gives, "" for none.
	Instead string
}

// String shows the demand: ".spec.replicas: granular:* granular:scale generic".
func (d Demand) String() string { return d.Path + ": " + strings.Join(d.AnyOf, " ") }

// Answer is what a core says of a write: its demands, or an error, with which the write is refused.
type Answer struct {
	Demands []Demand
	Err     error
}

// Difference is a demand that one core makes, and that the other one does not make as strictly.
type Difference struct {
	// Looser means that the core in force lets writes pass that the previous one refused.
	Looser bool
	Demand
	// Err is set if one of the two answers with an error: the previous one if Looser, else the one in force.
	Err error
	// Now is the whole answer of the core in force.
	Now Answer
	// AtTimes means that a condition on values decides whether the barrier of the demand holds.
	AtTimes bool
	// Kind is the kind of the object. Placed means that it has a field where the verb of the demand is a barrier, OfPods that a Pod or a
	// template of Pods has one with the verb.
	Kind           string
	Placed, OfPods bool
}

// String shows the difference for a report.
func (d Difference) String() string {
	kind := "stricter"
	if d.Looser {
		kind = "looser"
	}
	if d.Err != nil {
		return fmt.Sprintf("%s: error: %v", kind, d.Err)
	}
	return kind + ": " + d.Demand.String()
}

// Compare returns the differences between two answers about one write.
func Compare(before, now Answer) []Difference {
	switch {
	case before.Err != nil && now.Err != nil:
		return nil
	case before.Err != nil:
		return []Difference{{Looser: true, Err: before.Err, Now: now}}
	case now.Err != nil:
		return []Difference{{Err: now.Err, Now: now}}
	}
	var out []Difference
	for _, d := range before.Demands {
		if !impliedBy(d, now.Demands) {
			out = append(out, Difference{Looser: true, Demand: d, Now: now})
		}
	}
	for _, d := range now.Demands {
		if !impliedBy(d, before.Demands) {
			out = append(out, Difference{Demand: d, Now: now})
		}
	}
	return out
}

// impliedBy reports whether a user who does not meet the demand misses one of the others too.
func impliedBy(d Demand, others []Demand) bool {
	return slices.ContainsFunc(others, func(o Demand) bool {
		for _, v := range o.AnyOf {
			if !slices.Contains(d.AnyOf, v) {
				return false
			}
		}
		return true
	})
}
