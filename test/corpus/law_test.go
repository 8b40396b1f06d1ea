package corpus

import (
	"bytes"
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// TestD10_RecordedPairs checks the rules for Diff with the objects that real API servers send: Diff(x, x) is empty, swapping old and new
// gives the same paths, and if nothing is charged the objects are equal except for owners and the fields that the server writes.
func TestD10_RecordedPairs(t *testing.T) {
	permissions, err := compiled()
	must(t, err)
	for _, s := range scenarios(t) {
		for _, step := range s.Reviewed() {
			req, err := s.Request(step)
			must(t, err)
			if req.Operation != admissionv1.Update || step.ErrorCode != 0 {
				continue
			}
			kind, err := permissions.Kind(runtimeschema.GroupVersionKind{Group: req.Kind.Group, Version: req.Kind.Version, Kind: req.Kind.Kind})
			must(t, err)
			diff := func(old, object []byte) []fieldperm.Requirement {
				out, err := fieldperm.Diff(t.Context(), old, object, kind, nil)
				must(t, err)
				if kind.IsScale() {
					// A write of a Scale changes owners, although it may change no value.
					out = slices.DeleteFunc(out, func(r fieldperm.Requirement) bool { return r.Operation == fieldperm.Ownership })
				}
				if !kind.Lossy() {
					return out
				}
				// A version that hides fields is charged at the root, whatever the objects are.
				shown := slices.DeleteFunc(slices.Clone(out), func(r fieldperm.Requirement) bool { return r.Path.String() == rootPath })
				if len(shown) == len(out) {
					t.Errorf("%s: a lossy version is not charged at the root", s.Name+"/"+step.Name)
				}
				return shown
			}
			name := s.Name + "/" + step.Name
			for _, same := range [][]byte{req.OldObject.Raw, req.Object.Raw} {
				if out := diff(same, same); len(out) > 0 {
					t.Errorf("%s: an object differs from itself at %s", name, out[0].Path)
				}
			}
			there, back := diff(req.OldObject.Raw, req.Object.Raw), diff(sameAge(req.Object.Raw), sameAge(req.OldObject.Raw))
			// The server writes a field because of another one (D13) in one direction only, and a condition holds in one.
			paths := oneWayPaths(kind)
			oneWay := func(path string) bool { return paths[anyIndex.ReplaceAllString(path, "[*]")] || paths[path] }
			a, b := slices.DeleteFunc(valuePaths(there), oneWay), slices.DeleteFunc(valuePaths(back), oneWay)
			if !slices.Equal(a, b) {
				t.Errorf("%s: paths %q, swapped %q", name, a, b)
			}
			if len(there) == 0 && !reflect.DeepEqual(bare(t, req.OldObject.Raw), bare(t, req.Object.Raw)) {
				t.Errorf("%s: nothing is charged and the objects differ", name)
			}
		}
	}
}

// sameAge returns the text of an object with a fixed generation, because a generation never falls.
func sameAge(raw []byte) []byte { return anyAge.ReplaceAll(raw, []byte(`"generation":1`)) }

var anyAge = regexp.MustCompile(`"generation": *[0-9]+`)

// oneWayPaths are the patterns of the fields that a server writes by itself because of another field, and of those that a barrier guards at times.
func oneWayPaths(kind *schema.Kind) map[string]bool {
	out := map[string]bool{}
	kind.Walk(func(p fieldpath.Pattern, n *schema.Node) {
		if n.Written() != nil || slices.ContainsFunc(n.Permissions(), (*schema.Permission).Conditional) {
			out[p.String()] = true
		}
	})
	return out
}

// anyIndex matches an item or a key in a path.
var anyIndex = regexp.MustCompile(`\[[^\]]*\]`)

// rootPath is the path of a whole object.
var rootPath = fieldpath.Path{}.String()

// valuePaths are the paths of changed values, sorted. It leaves out owners, which follow other rules (D8).
func valuePaths(requirements []fieldperm.Requirement) []string {
	var out []string
	for i := range requirements {
		if requirements[i].Operation != fieldperm.Ownership {
			out = append(out, requirements[i].Path.String())
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// bare is an object without the fields that D7 and D8 leave free. Numbers are read as floats: no number in the corpus that is not charged
// needs more precision.
func bare(t *testing.T, raw []byte) any {
	t.Helper()
	var object map[string]any
	must(t, json.NewDecoder(bytes.NewReader(raw)).Decode(&object))
	if meta, ok := object["metadata"].(map[string]any); ok {
		for _, field := range []string{"managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"} {
			delete(meta, field)
		}
	}
	return object
}
