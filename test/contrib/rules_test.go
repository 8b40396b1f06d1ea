package contrib

import (
	"maps"
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/schema/load"
)

// TestContrib_CoversEveryKind: every kind of a project has a PermissionSchema, or modules.yaml says why not.
func TestContrib_CoversEveryKind(t *testing.T) {
	for _, p := range readProjects(t) {
		covered := map[string]bool{}
		for _, d := range p.schemas(t) {
			kind := d.Kind + "." + d.Group
			if covered[kind] {
				t.Errorf("%s: kind %s has two objects", p.File, kind)
			}
			covered[kind] = true
		}
		defined := map[string]bool{}
		for _, variant := range p.Variants {
			for _, d := range p.definitions(t, 0, variant) {
				documents, errs := load.Decode(d.name, d.raw)
				if len(errs) > 0 {
					t.Fatal(errs)
				}
				for gvk := range documents.Topologies[0].Kinds {
					defined[gvk.Kind+"."+gvk.Group] = true
				}
			}
		}
		for kind := range defined {
			if covered[kind] == (p.LeftOut[kind] != "") {
				t.Errorf("%s: kind %s must be covered or left out with a reason, and not both", p.File, kind)
			}
		}
		for kind := range covered {
			if defined[kind] == (p.ByHand[kind] != "") {
				t.Errorf("%s: kind %s must be in a module or be reviewed by hand, and not both", p.File, kind)
			}
		}
		for _, listed := range []map[string]string{p.LeftOut, p.ByHand} {
			for kind := range listed {
				if !defined[kind] && !covered[kind] {
					t.Errorf("%s: kind %s of modules.yaml does not exist", p.File, kind)
				}
			}
		}
	}
}

// TestContrib_VerbsAreWellKnownOrHaveTheDomain: a Role that names a verb without a domain means the same concept in every kind.
func TestContrib_VerbsAreWellKnownOrHaveTheDomain(t *testing.T) {
	catalogue, err := load.Catalogue(true)
	must(t, err)
	known := map[string]bool{}
	for _, d := range catalogue {
		for _, e := range d.Entries {
			known[e.Verb] = true
		}
	}
	for _, p := range readProjects(t) {
		for _, e := range p.entries(t) {
			if e.Verb != "" && domain(e.Verb) != p.Domain && !known[e.Verb] {
				t.Errorf("%s: %s %s: verb %q is not well known and does not have the domain %q", p.File, e.kind, e.Path, e.Verb, p.Domain)
			}
		}
	}
}

// TestContrib_NoVerbOfEveryKindIsLost: a catalogue only adds more specific verbs. It has no barrier, and it replaces no entry that every kind
// has, so a holder of specification, status or metadata keeps every field.
func TestContrib_NoVerbOfEveryKindIsLost(t *testing.T) {
	catalogue, err := load.Catalogue(true)
	must(t, err)
	every := map[string]bool{}
	for _, d := range catalogue {
		for _, e := range d.Entries {
			if d.Kind == "*" {
				every[e.Path] = true
			}
		}
	}
	if !every[".spec"] || !every[".metadata.annotations"] {
		t.Fatal("the entries of every kind were not found")
	}
	for _, p := range readProjects(t) {
		for _, e := range p.entries(t) {
			if every[e.Path] {
				t.Errorf("%s: %s %s: replaces the verb that every kind has there", p.File, e.kind, e.Path)
			}
			if e.Excluded || e.ExcludedWhen != "" {
				t.Errorf("%s: %s %s: is a barrier, which takes the field from users with update", p.File, e.kind, e.Path)
			}
		}
	}
}

// TestContrib_EveryVerbCanBeCharged: no verb is within an atomic list or map, which is charged as a whole (D4).
func TestContrib_EveryVerbCanBeCharged(t *testing.T) {
	for _, p := range readProjects(t) {
		for _, variant := range p.Variants {
			compiled, _ := p.compile(t, p.definitions(t, 0, variant))
			for _, d := range p.schemas(t) {
				versions := versionsOf(compiled, d.Group, d.Kind)
				if len(versions) == 0 && p.ByHand[d.Kind+"."+d.Group] == "" {
					t.Errorf("%s: kind %s.%s did not compile", p.File, d.Kind, d.Group)
				}
				for _, e := range d.Entries {
					if len(versions) > 0 && !slices.ContainsFunc(versions, func(k *schema.Kind) bool { return charged(t, k.Root, e.Path) }) {
						t.Errorf("%s: %s %s: is within an atomic list or map", p.File, d.Kind, e.Path)
					}
				}
			}
		}
	}
}

func versionsOf(compiled *schema.Schema, group, kind string) []*schema.Kind {
	return slices.DeleteFunc(compiled.Kinds(), func(k *schema.Kind) bool {
		return k.GroupKind() != runtimeschema.GroupKind{Group: group, Kind: kind}
	})
}

// charged reports whether the path exists below the node and only crosses lists with keys and maps that are not atomic.
func charged(t *testing.T, n *schema.Node, path string) bool {
	t.Helper()
	pattern, err := fieldpath.ParsePattern(path)
	must(t, err)
	for _, step := range pattern {
		switch list, mapping := n.List(), n.Map(); {
		case list != nil && !list.Atomic() && step.Any:
			n = list.Item()
		case mapping != nil && !mapping.Atomic():
			// For any value the name is empty, which is no field.
			n = mapping.Child(step.Name)
		default:
			return false
		}
		if n == nil {
			return false
		}
	}
	return true
}

// TestContrib_PowersAreDeclared: a verb has at least the powers of the verbs below it, and a verb that several fields of a kind share has
// powers on all of them or on none. So a verb without powers never covers a field that has some.
func TestContrib_PowersAreDeclared(t *testing.T) {
	for _, p := range readProjects(t) {
		entries := p.entries(t)
		if len(entries) == 0 {
			t.Fatalf("%s: no entries were read", p.File)
		}
		for _, above := range entries {
			for _, below := range entries {
				if above.Verb == "" || below.Verb == "" || above.kind != below.kind {
					continue
				}
				if within(below.Path, above.Path) {
					for _, power := range below.powers {
						if !slices.Contains(above.powers, power) {
							t.Errorf("%s: %s %s: %q lacks the power %s of %s", p.File, above.kind, above.Path, above.Verb, power, below.Path)
						}
					}
				}
				if above.Verb == below.Verb && (len(above.powers) == 0) != (len(below.powers) == 0) {
					t.Errorf("%s: %s: %q has powers at %s and none at %s: give them two verbs", p.File, above.kind, above.Verb, above.Path, below.Path)
				}
			}
		}
	}
}

// TestContrib_HeaderNamesTheVersions: the comment at the top of a catalogue names each module with the version that was reviewed.
func TestContrib_HeaderNamesTheVersions(t *testing.T) {
	for _, p := range readProjects(t) {
		header := p.header(t)
		for _, m := range p.Modules {
			for _, v := range m.Versions {
				if !strings.Contains(header, v.Version) {
					t.Errorf("%s: the comment at the top does not name %s %s of modules.yaml", p.File, m.Path, v.Version)
				}
			}
		}
		for _, source := range slices.Sorted(maps.Values(p.ByHand)) {
			words := strings.Fields(source)
			if !strings.Contains(header, words[len(words)-1]) {
				t.Errorf("%s: the comment at the top does not name %q", p.File, source)
			}
		}
	}
}
