package rolemarkers

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/controller-tools/pkg/markers"

	"github.com/fieldperm/fieldperm/internal/spelling"
)

const (
	name    = "fieldperm:rbac"
	prefix  = "+" + name + ":"
	example = `+fieldperm:rbac:groups=apps,resources=deployments,fields=.spec.replicas;.metadata.labels["example.com/*"]`
)

// arguments are the arguments of the marker, with the syntax of controller-tools.
type arguments struct {
	Groups    []string
	Resources []string
	Fields    []string
	Versions  []string `marker:",optional"`
	Verbs     []string `marker:",optional"`
}

// names are the names of the arguments.
var names = []string{"groups", "resources", "fields", "versions", "verbs"}

// replaceable are the verbs that granular verbs may take the place of.
var replaceable = []string{"create", "update", "patch"}

// unknownArgument matches controller-tools' message about an argument that does not exist.
var unknownArgument = regexp.MustCompile(`unknown argument "([^"]*)"`)

// parse parses a marker that begins with the prefix. The message says what is wrong with it, "" for nothing.
func parse(text string) (*Fields, string) {
	definition, err := markers.MakeDefinition(name, markers.DescribesPackage, arguments{})
	if err != nil {
		return nil, err.Error()
	}
	value, err := definition.Parse(text)
	if err != nil {
		if found := unknownArgument.FindStringSubmatch(err.Error()); found != nil {
			if near := spelling.Nearest(found[1], names); near != "" {
				return nil, fmt.Sprintf("argument %q is unknown: use %q", found[1], near)
			}
			return nil, fmt.Sprintf("argument %q is unknown: use one of %s", found[1], strings.Join(names, ", "))
		}
		return nil, fmt.Sprintf("marker cannot be read: %v: write it like %s", err, example)
	}
	a, ok := value.(arguments)
	if !ok {
		return nil, fmt.Sprintf("marker cannot be read: write it like %s", example)
	}
	for i, group := range a.Groups {
		if group == "core" {
			a.Groups[i] = ""
		}
	}
	if a.Verbs == nil {
		a.Verbs = []string{"update", "patch"}
	}
	for _, part := range []struct {
		name  string
		texts []string
	}{{"groups", a.Groups}, {"resources", a.Resources}, {"fields", a.Fields}, {"verbs", a.Verbs}} {
		if len(part.texts) == 0 {
			return nil, fmt.Sprintf("argument %q is empty: write it like %s", part.name, example)
		}
	}
	for _, list := range [][]string{a.Groups, a.Resources} {
		if slices.ContainsFunc(list, func(text string) bool { return strings.Contains(text, "*") }) {
			return nil, fmt.Sprintf("%q names all: name each group and resource, because fields are of one kind", list)
		}
	}
	for _, verb := range a.Verbs {
		if !slices.Contains(replaceable, verb) {
			return nil, fmt.Sprintf("verb %q is not about fields: use %s", verb, strings.Join(replaceable, ", "))
		}
	}
	// Either of the two lets a holder change every field.
	if slices.Contains(a.Verbs, "update") != slices.Contains(a.Verbs, "patch") {
		return nil, "verbs have one of update and patch, and the other changes every field: name both"
	}
	return &Fields{Groups: a.Groups, Resources: a.Resources, Fields: a.Fields, Versions: a.Versions, Verbs: a.Verbs}, ""
}

// isOurs reports whether a comment is meant as a marker of fieldperm: with a plus and a name that is the right one or nearly so, or without a
// plus and with the right name and arguments.
func isOurs(text string) bool {
	rest, plus := strings.CutPrefix(text, "+")
	head := strings.TrimSpace(rest)
	if end := strings.IndexAny(head, "= \t"); end >= 0 {
		head = head[:end]
	}
	parts := strings.Split(strings.ToLower(head), ":")
	called := strings.Join(parts[:min(2, len(parts))], ":")
	if plus {
		return spelling.Edits(called, name) <= 2 || strings.Contains(rest, "fieldperm") && strings.Contains(rest, "resources=")
	}
	return called == name && strings.Contains(text, "=")
}
