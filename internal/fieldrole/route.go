package fieldrole

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// way is a resource or subresource with the fields that are written through it.
type way struct {
	subresource string
	tree        *fieldtree.Kind
	// root is the tree as it compares.
	root   *schema.Node
	fields []asked
	notes  []string
}

// asked is a field with its path in the object and in the body of the request.
type asked struct{ stored, body string }

const status = "status"

// route finds through which resource and subresources fields are written: the status through its subresource, and all others through the
// resource, unless the options leave it out.
func (t *Target) route(fields []string, o Options) ([]*way, error) {
	if len(fields) == 0 {
		return nil, errors.New("field is missing: name one, such as .spec.replicas")
	}
	var main, inStatus []string
	for _, f := range distinct(fields) {
		f = "." + strings.TrimPrefix(f, ".")
		if t.hasStatus() && isBelow(f, "."+status) {
			inStatus = append(inStatus, f)
		} else {
			main = append(main, f)
		}
	}
	var out []*way
	add := func(subresource string, of []string) error {
		if len(of) == 0 || slices.ContainsFunc(out, func(w *way) bool { return w.subresource == subresource }) {
			return nil
		}
		w, err := t.through(subresource, of)
		out = append(out, w)
		return err
	}
	if !o.Only {
		if err := add("", main); err != nil {
			return nil, err
		}
		if err := add(status, inStatus); err != nil {
			return nil, err
		}
	}
	for _, subresource := range o.Subresources {
		of := slices.DeleteFunc(slices.Clone(distinct(fields)), func(f string) bool {
			_, writes := t.bodyPath(subresource, "."+strings.TrimPrefix(f, "."))
			return !writes
		})
		if _, err := t.through(subresource, fields); len(of) == 0 && err != nil {
			return nil, err
		}
		if err := add(subresource, of); err != nil {
			return nil, err
		}
	}
	for _, f := range distinct(fields) {
		f = "." + strings.TrimPrefix(f, ".")
		if !slices.ContainsFunc(out, func(w *way) bool {
			return slices.ContainsFunc(w.fields, func(have asked) bool { return have.stored == f })
		}) {
			return nil, fmt.Errorf("path %q of %s: the subresources %q do not write it: leave it out, or leave out --only-subresources", f, t.Kind, o.Subresources)
		}
	}
	t.mention(out, main)
	return out, nil
}

// through returns the way through one resource or subresource. All fields must be written through it.
func (t *Target) through(subresource string, fields []string) (*way, error) {
	out := &way{subresource: subresource}
	of := t.GroupVersionKind
	if subresource != "" {
		e, known := endpoint.Lookup(t.Group, t.Resource, subresource)
		if !known || !t.serves(&e) {
			return nil, fmt.Errorf("subresource %q of %s: is not known to write fields: %s", subresource, t.Resource, t.use())
		}
		if t.takesOther(&e) {
			all := t.kinds.compiled.Kinds()
			at := slices.IndexFunc(all, func(k *schema.Kind) bool { return k.GroupKind() == e.GroupKind() })
			if at < 0 {
				return nil, fmt.Errorf("subresource %q of %s: takes a %s, whose fields are not known: leave it out", subresource, t.Resource, e.Body.Kind)
			}
			of = all[at].GroupVersionKind
		}
	}
	ref := t.ref(t.GroupVersionKind, subresource)
	var err error
	if out.tree, err = fieldtree.Of(t.kinds.compiled, of, ref); err != nil {
		return nil, err
	}
	compared, err := t.kinds.compiled.KindFor(of, ref)
	if err != nil {
		return nil, err
	}
	out.root = compared.Root
	for _, f := range distinct(fields) {
		f = "." + strings.TrimPrefix(f, ".")
		body, writes := t.bodyPath(subresource, f)
		switch {
		case writes:
			out.fields = append(out.fields, asked{f, body})
		case subresource == "":
			return nil, fmt.Errorf("path %q of %s: is written through %s/%s: name that resource", f, t.Kind, t.Resource, status)
		default:
			// A misspelled path has a better error.
			_, err := t.stored(strings.Replace(f, `/*"]`, `/"]`, 1))
			if err == nil {
				err = fmt.Errorf("path %q of %s: the subresource %q does not write it: %s", f, t.Kind, subresource, t.instead(f))
			}
			return nil, err
		}
	}
	return out, nil
}

// takesOther reports whether the body of an endpoint is of another kind than the object.
func (t *Target) takesOther(e *endpoint.Endpoint) bool {
	return e.Body.Kind != "" && e.Body.Kind != "*" && e.GroupKind() != runtimeschema.GroupKind{Group: t.Group, Kind: t.Kind}
}

// bodyPath returns the path of a field of the object in the body of a request to the resource or a subresource, and whether such a request writes
// the field.
func (t *Target) bodyPath(subresource, stored string) (body string, writes bool) {
	if subresource == "" {
		return stored, !t.hasStatus() || !isBelow(stored, "."+status)
	}
	e, known := endpoint.Lookup(t.Group, t.Resource, subresource)
	if !known || e.Storage == "" {
		return "", false
	}
	asked, err := t.stored(stored)
	if err != nil {
		return "", false
	}
	for _, f := range e.Fields {
		to := f.Stored()
		if to == endpoint.SpecReplicas {
			to = t.replicas()
		}
		steps, isIn := within(asked, to)
		switch {
		case !isIn:
		case f.From == to:
			return stored, true
		default:
			below := region{steps: askedFor(&Field{place: asked}).steps[steps:]}
			return f.From + below.path(), true
		}
	}
	if !t.takesOther(&e) && slices.ContainsFunc(e.Refused, func(refused string) bool { _, isIn := within(asked, refused); return isIn }) {
		return stored, true
	}
	return "", false
}

// stored returns the place of a field of the object.
func (t *Target) stored(path string) (*fieldtree.Place, error) {
	if t.main == nil {
		tree, err := t.tree("")
		if err != nil {
			return nil, err
		}
		t.main = tree
	}
	return t.main.Find(path)
}

// within reports whether every path of a place is one that the path of an endpoint names, or below it. steps is the length of that path.
func within(p *fieldtree.Place, of string) (steps int, isIn bool) {
	above, err := fieldpath.ParsePattern(of)
	if err != nil || len(above) == 0 || len(above) > len(p.Path) {
		return 0, false
	}
	return len(above), above.Covers(p.Path[:len(above)])
}

// writers returns the subresources that write a field and let granular users in.
func (t *Target) writers(stored string) []string {
	var out []string
	for _, e := range endpoint.Writers(t.Group, t.Resource) {
		if !t.isUsable(&e) {
			continue
		}
		if _, writes := t.bodyPath(e.Subresource, stored); writes {
			out = append(out, e.Subresource)
		}
	}
	return out
}

// mention adds notes about subresources that write fields too and have no rule. The metadata that a status lets pass is of no use.
func (t *Target) mention(ways []*way, main []string) {
	for _, f := range main {
		if isBelow(f, ".metadata") {
			continue
		}
		for _, subresource := range t.writers(f) {
			if !slices.ContainsFunc(ways, func(w *way) bool { return w.subresource == subresource }) {
				ways[0].notes = append(ways[0].notes, fmt.Sprintf("%s/%s writes %s too, and is another resource for RBAC: add --subresource %s", t.Resource, subresource, f, subresource))
			}
		}
	}
}

// serves reports whether the kind has the subresource of an endpoint, and objects are written through it.
func (t *Target) serves(e *endpoint.Endpoint) bool {
	switch e.Subresource {
	case status:
		return t.hasStatus()
	case "scale":
		return t.replicas() != ""
	}
	return e.Storage != ""
}

// isUsable reports whether an endpoint is a subresource of the kind through which granular users may write.
func (t *Target) isUsable(e *endpoint.Endpoint) bool {
	return e.Subresource != "" && e.Group == t.Group && e.Resource == t.Resource && t.serves(e) && endpoint.TakesMarker(t.Group, t.Resource, e.Subresource)
}

// use names the subresources that may be used.
func (t *Target) use() string {
	var names []string
	for _, e := range endpoint.Writers(t.Group, t.Resource) {
		if t.isUsable(&e) {
			names = append(names, e.Subresource)
		}
	}
	if len(names) == 0 {
		return "leave it out"
	}
	return "use " + strings.Join(names, " or ")
}

// instead names what writes a field.
func (t *Target) instead(stored string) string {
	names := t.writers(stored)
	for i := range names {
		names[i] = t.Resource + "/" + names[i]
	}
	if _, writes := t.bodyPath("", stored); writes {
		names = append([]string{t.Resource}, names...)
	}
	return "it is written through " + strings.Join(names, " and ")
}

// isBelow reports whether a path is another one, or below it.
func isBelow(path, above string) bool {
	rest, ok := strings.CutPrefix(path, above)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
