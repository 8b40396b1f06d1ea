package contrib

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema"
)

// entry is one line of a catalogue with the powers in its comment.
type entry struct {
	v1alpha1.FieldPermission
	kind   string
	powers []schema.Power
}

// entries reads a catalogue line by line, because the comments have the powers. Each entry is one line.
func (p *project) entries(t *testing.T) []entry {
	t.Helper()
	var out []entry
	var group, kind string
	for i, line := range strings.Split(string(p.read(t)), "\n") {
		if value, ok := strings.CutPrefix(line, "  group: "); ok {
			group = value
		}
		if value, ok := strings.CutPrefix(line, "  kind: "); ok {
			kind = value + "." + group
		}
		text, ok := strings.CutPrefix(line, "  - {")
		if !ok {
			continue
		}
		e := entry{kind: kind}
		value, comment, _ := strings.Cut(text, "} # ")
		must(t, yaml.UnmarshalStrict([]byte("{"+strings.TrimSuffix(value, "}")+"}"), &e.FieldPermission))
		var err error
		if e.powers, err = parsePowers(comment); err != nil {
			t.Errorf("%s:%d: %v", p.File, i+1, err)
		}
		out = append(out, e)
	}
	return out
}

// parsePowers reads a comment: powers in the order of AllPowers with commas between them, or the word none, then a colon and a reason. No
// comment means none.
func parsePowers(comment string) ([]schema.Power, error) {
	words, _, _ := strings.Cut(comment, ":")
	if words == "" || words == "none" {
		return nil, nil
	}
	var out []schema.Power
	last := -1
	for _, word := range strings.Split(words, ", ") {
		at := slices.Index(schema.AllPowers(), schema.Power(word))
		if at <= last {
			return nil, fmt.Errorf("comment %q: %q is not a power, stands twice or in another order: write some of %v, or none", comment, word, schema.AllPowers())
		}
		last = at
		out = append(out, schema.Power(word))
	}
	return out, nil
}

// within reports whether a path is below another one.
func within(path, above string) bool {
	rest, ok := strings.CutPrefix(path, above)
	return ok && rest != "" && (rest[0] == '.' || rest[0] == '[')
}

// domain returns the domain of a verb, empty for a well-known one.
func domain(verb string) string {
	before, _, found := strings.Cut(verb, "/")
	if !found {
		return ""
	}
	return before
}
