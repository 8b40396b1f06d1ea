package previous

import (
	"slices"
	"strings"
)

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
func Rows() []Row {
	return []Row{
		{
			Name:   "irregular",
			Reason: "D10: a change of an object whose names do not tell its fields apart is a change of the whole object",
			Is:     func(d Difference) bool { return isIrregular(d.Now) },
		},
		{
			Name: "irregular, and does not fit", Looser: true,
			Reason: "D10: the whole object is charged, with each barrier of the kind, so it is not looked whether each value has the form of its type",
			Is:     func(d Difference) bool { return d.Err != nil && isIrregular(d.Now) },
		},
		{
			Name: "irregular, by the barriers of its sets", Looser: true,
			Reason: "D10: each barrier of the kind is a demand of the whole object. A barrier with a parameter asks for the verb with it, wherever the names lead",
			Is: func(d Difference) bool {
				return isIrregular(d.Now) && slices.ContainsFunc(d.Now.Demands, func(now Demand) bool {
					return now.Path == "." && len(now.AnyOf) == 1 && strings.HasPrefix(now.AnyOf[0], specific(d.Demand)+"(")
				})
			},
		},
		{
			Name: "a key with its own verb", Looser: true,
			Reason: "C7 is gone: metadata, labels and annotations cover the keys below them, as KEP-3617 says. powers.md says what they are worth",
			Is: func(d Difference) bool {
				return isKey(d.Path) && slices.ContainsFunc(d.Now.Demands, func(now Demand) bool {
					return now.Path == d.Path && specific(now) == specific(d.Demand) && impliedBy(now, []Demand{d.Demand})
				})
			},
		},
		{
			Name: "a key with its own verb, of owners", Looser: true,
			Reason: "C7 is gone: what stood apart in a map that changes owners is covered by the verb of the map, unless it is behind a barrier",
			Is: func(d Difference) bool {
				return d.Owners && isKey(d.Path) && strings.HasPrefix(d.Path, ".metadata.") && !strings.HasPrefix(specific(d.Demand), "granular:label") && !strings.HasPrefix(specific(d.Demand), "granular:annotation")
			},
		},
		{
			Name: "a key with its own verb, behind a barrier", Looser: true,
			Reason: "C7 is gone: a barrier on the verb of all keys asks for that verb, at a key with its own verb too",
			Is: func(d Difference) bool {
				return isKey(d.Path) && slices.ContainsFunc(d.Now.Demands, func(now Demand) bool {
					return now.Path == d.Path && (strings.HasPrefix(now.AnyOf[0], "granular:annotation") || strings.HasPrefix(now.AnyOf[0], "granular:label")) && !slices.Contains(now.AnyOf, Generic)
				})
			},
		},
		{
			Name: "parts of fields that no schema knows, of owners", Looser: true,
			Reason: "D8: structured-merge-diff says what an owner of such a part owns. It leaves the parts, so a merge into ancient-changes moves them as they are",
			Is:     func(d Difference) bool { return d.Owners && strings.HasPrefix(d.Path, `["`) },
		},
		{
			Name: "times of items whose keys are alike", Looser: true,
			Reason: "D5: the owner of an item whose keys another has too owns a change of either, so its time may change. The list is charged",
			Is:     func(d Difference) bool { return d.Path == ".metadata.managedFields" },
		},
		{
			Name: "a barrier of Pods in a template", Looser: true,
			Reason: "C8 is gone: what a document or a set says of Pods holds for Pods. A PermissionSchema about a fragment, and a set that names the workloads, hold in templates",
			Is: func(d Difference) bool {
				return (strings.Contains(d.Path, "emplate") || d.Owners && d.Path == "." && strings.Contains(specific(d.Demand), "emplate") || strings.HasPrefix(d.Path, ".data")) && !slices.Contains(d.AnyOf, Generic)
			},
		},
		{
			Name: "a barrier of Pods in a template, of owners", Looser: true,
			Reason: "C8 is gone: the whole object of a workload is charged with the barriers of its own kind",
			Is: func(d Difference) bool {
				return d.OfPods && d.Kind != "Pod" && d.Owners && d.Path == "." && !slices.Contains(d.AnyOf, Generic)
			},
		},
		{
			Name: "a barrier in its place", Looser: true,
			Reason: "versions: through the version in which a barrier has its place it is asked there. It was asked of every change, because another version may have the field elsewhere, or with another verb",
			Is: func(d Difference) bool {
				return d.Placed && (strings.HasPrefix(d.Instead, "a field behind a barrier may have another name in version") || strings.Contains(d.Instead, "has another verb in version"))
			},
		},
		{
			Name: "a source beside the verb of the catalogue", Looser: true,
			Reason: "C1: an entry that only names a parameter source claims no verb, so it leaves the verb of the catalogue in force. It took the place of the whole claim",
			Is: func(d Difference) bool {
				ofCatalogue := func(v string) bool { return v == "granular:specification" || v == "granular:status" }
				return d.Path == "." && ofCatalogue(specific(d.Demand)) || slices.ContainsFunc(d.Now.Demands, func(now Demand) bool {
					now.AnyOf = slices.DeleteFunc(slices.Clone(now.AnyOf), ofCatalogue)
					return (now.Path == d.Path || d.Owners) && impliedBy(d.Demand, []Demand{now})
				})
			},
		},
		{
			Name: "a verb in place of a source", Looser: true,
			Reason: "C1: an entry with a verb leaves the source of the catalogue in force, so the definition or document is accepted. It was refused",
			Is: func(d Difference) bool {
				return d.Err != nil && strings.Contains(d.Err.Error(), "takes the place of an entry that emits parameter")
			},
		},
		{
			Name: "verbs of renamed fields", Looser: true,
			Reason: "versions: the author of a definition declares that its conversion is lossless, and is believed. The verbs of renamed fields are not compared; fieldperm-gen crd and lint compare them",
			Is: func(d Difference) bool {
				return strings.HasPrefix(d.Instead, "the conversion is declared lossless, but")
			},
		},
		{
			Name:   "a barrier that a version cannot place",
			Reason: "versions: it is a demand of every change through the version, in the status, in a Scale and in fields that both versions have too",
			Is:     func(d Difference) bool { return strings.Contains(d.Instead, "has no place in version") },
		},
		{
			Name:   "existence",
			Reason: "C5: a new object makes one demand more than its fields, granular:creation",
			Is:     isExistence,
		},
		{
			Name: "existence in place of the whole", Looser: true,
			Reason: "C5: an object of which no field is charged needed granular:*. It needs granular:creation, as every new object does, which nobody had before",
			Is: func(d Difference) bool {
				return d.Path == "." && specific(d.Demand) == "granular:*" && slices.ContainsFunc(d.Now.Demands, func(now Demand) bool {
					return isExistence(Difference{Demand: now}) && impliedBy(now, []Demand{d.Demand})
				})
			},
		},
		{
			Name:   "a part that is not its default",
			Reason: "C5: a part of a new object is free if it is its default or the API server wrote all of it. One with some of both was free",
			Is: func(d Difference) bool {
				return d.Path != "." && slices.Contains(d.AnyOf, Generic) && slices.ContainsFunc(d.Now.Demands, func(now Demand) bool { return isExistence(Difference{Demand: now}) })
			},
		},
		{
			Name:   "a change beside a barrier",
			Reason: "C2: a barrier makes one more demand. The change makes its own as well",
			Is: func(d Difference) bool {
				return slices.ContainsFunc(d.Now.Demands, func(now Demand) bool { return now.Path == d.Path && !slices.Contains(now.AnyOf, Generic) })
			},
		},
		{
			Name:   "a key in place of its prefix",
			Reason: "C1: the verb of a key stands in place of that of its prefix and of all keys",
			Is:     func(d Difference) bool { return isKey(d.Path) },
		},
		{
			Name: "Conditional", Looser: true,
			Reason: "conditions at scalars: a condition that could not be evaluated on a part of an object counted as true. A condition at anything but a scalar is a fault",
			Is:     func(d Difference) bool { return d.AtTimes },
		},
		{
			Name:   "Conditional",
			Reason: "conditions at scalars: a null counts as true, and the stored versions of a definition are compared by position",
			Is:     func(d Difference) bool { return d.AtTimes },
		},
		{
			Name:   "an int-or-string that is neither",
			Reason: "conditions at scalars: an int-or-string of a definition is one. The API server accepts nothing else there",
			Is: func(d Difference) bool {
				return d.Err != nil && strings.Contains(d.Err.Error(), "does not fit the schema")
			},
		},
		{
			Name:   "the whole object, of owners",
			Reason: "D8: an entry in the names of another version, an item that is owned in part, a time without a change, and an apply that may empty a struct through a conversion are charged as the whole object",
			Is:     func(d Difference) bool { return d.Owners && d.Path == "." },
		},
		{
			Name:   "what an applier owned before, and barriers in what changes owners",
			Reason: "D8: a manager that gains something by applying is charged what it owned before (F2); the own entry of a struct or map is charged with each barrier in it; an item is charged to a manager that leaves it",
			Is:     func(d Difference) bool { return d.Owners },
		},
	}
}

// isExistence reports whether a demand is that of the existence of an object.
func isExistence(d Difference) bool {
	return d.Path == "." && specific(d.Demand) == "granular:creation"
}

// isKey reports whether a path ends with the key of a map.
func isKey(path string) bool { return strings.HasSuffix(path, `"]`) }

// specific returns the most specific verb of a demand.
func specific(d Demand) string {
	verbs := slices.DeleteFunc(slices.Clone(d.AnyOf), func(v string) bool { return v == Generic })
	if len(verbs) == 0 {
		return ""
	}
	return verbs[len(verbs)-1]
}

// isIrregular reports whether the core in force charges an irregular object.
func isIrregular(a Answer) bool {
	return slices.ContainsFunc(a.Demands, func(d Demand) bool { return strings.HasPrefix(d.Instead, "a name in the object occurs twice") })
}

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
