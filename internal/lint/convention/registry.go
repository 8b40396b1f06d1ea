package convention

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/fieldperm/fieldperm/internal/spelling"
	"github.com/fieldperm/fieldperm/schema/catalog"
	"github.com/fieldperm/fieldperm/verbs"
)

// These identify a file of registered verbs. It is no object of a cluster.
const (
	RegistryAPIVersion = "fieldperm.dev/v1alpha1"
	RegistryKind       = "VerbRegistry"
)

// Registered is a verb that authors share.
type Registered struct {
	// Verb is the name, without "granular:".
	Verb string
	// Meaning says in a few words what the verb covers. It is "" for the verbs of the built-in catalogue, which docs/reference/verbs.md explains.
	Meaning string
	// Owner says whose verb it is: a domain, an API group or a team.
	Owner string
}

// Registry is the verbs that are well known. The zero Registry has none.
type Registry struct{ verbs map[string]Registered }

// builtInOwner is the owner of the verbs of the built-in catalogue.
const builtInOwner = "kubernetes"

// BuiltIn returns the verbs of the built-in catalogue.
func BuiltIn() (*Registry, error) {
	r := &Registry{verbs: map[string]Registered{}}
	names, err := fs.Glob(catalog.Files(), "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("catalogue: %w", err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(catalog.Files(), name)
		if err != nil {
			return nil, fmt.Errorf("catalogue: %w", err)
		}
		var document yamlv3.Node
		if err := yamlv3.Unmarshal(text, &document); err != nil {
			return nil, fmt.Errorf("catalogue: %s: %w", name, err)
		}
		r.collect(&document)
	}
	return r, nil
}

// collect adds the value of each key "verb".
func (r *Registry) collect(n *yamlv3.Node) {
	for i, c := range n.Content {
		if n.Kind == yamlv3.MappingNode && i%2 == 1 && n.Content[i-1].Value == "verb" {
			r.verbs[c.Value] = Registered{Verb: c.Value, Owner: builtInOwner}
		}
		r.collect(c)
	}
}

// Has reports whether a verb is registered.
func (r *Registry) Has(verb string) bool {
	_, ok := r.verbs[verb]
	return ok
}

// All returns the registered verbs by name.
func (r *Registry) All() []Registered {
	out := make([]Registered, 0, len(r.verbs))
	for _, v := range r.verbs {
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b Registered) int { return strings.Compare(a.Verb, b.Verb) })
	return out
}

// Nearest returns the registered verb without a domain that is closest to a name, "" if none is close.
func (r *Registry) Nearest(name string) string {
	var known []string
	for _, v := range r.All() {
		if !strings.Contains(v.Verb, "/") {
			known = append(known, v.Verb)
		}
	}
	return spelling.Nearest(name, known)
}

// Decode returns the registry together with the verbs of a file. The errors are "source:line:column: message".
func (r *Registry) Decode(source string, raw []byte) (*Registry, []error) {
	out := &Registry{verbs: make(map[string]Registered, len(r.verbs))}
	for name, v := range r.verbs {
		out.verbs[name] = v
	}
	d := &registryDecoder{source: source, out: out, seen: map[string]int{}}
	decoder := yamlv3.NewDecoder(bytes.NewReader(raw))
	found := false
	for {
		var document yamlv3.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, []error{fmt.Errorf("%s: is no YAML or JSON: %s: correct the syntax", source, strings.TrimPrefix(err.Error(), "yaml: "))}
		}
		if len(document.Content) == 1 && document.Content[0].Tag != "!!null" {
			found = true
			d.file(document.Content[0])
		}
	}
	if !found {
		d.errs = append(d.errs, fmt.Errorf("%s: is empty: give a file with kind: %s and a list of verbs", source, RegistryKind))
	}
	if len(d.errs) > 0 {
		return nil, d.errs
	}
	return out, nil
}

// registryDecoder reads one file strictly: a key that is not understood may be a verb that is not registered.
type registryDecoder struct {
	source string
	out    *Registry
	// seen has the line of each verb of the file.
	seen map[string]int
	errs []error
}

func (d *registryDecoder) fault(at *yamlv3.Node, format string, args ...any) {
	d.errs = append(d.errs, fmt.Errorf("%s:%d:%d: %s", d.source, at.Line, at.Column, fmt.Sprintf(format, args...)))
}

func (d *registryDecoder) file(n *yamlv3.Node) {
	for _, required := range []struct{ key, value string }{{"apiVersion", RegistryAPIVersion}, {"kind", RegistryKind}} {
		at, value := n, ""
		for i := 0; n.Kind == yamlv3.MappingNode && i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == required.key {
				at, value = n.Content[i+1], n.Content[i+1].Value
			}
		}
		if n.Kind == yamlv3.MappingNode && value != required.value {
			d.fault(at, "%s is not %q: write %s: %s", required.key, required.value, required.key, required.value)
			return
		}
	}
	fields := d.fields(n, "apiVersion", "kind", "metadata", "verbs")
	if fields == nil {
		return
	}
	list := fields["verbs"]
	if list == nil || list.Kind != yamlv3.SequenceNode || len(list.Content) == 0 {
		d.fault(n, "verbs is no list, or empty: list at least one {verb, meaning, owner}")
		return
	}
	for _, item := range list.Content {
		d.verb(item)
	}
}

func (d *registryDecoder) verb(n *yamlv3.Node) {
	fields := d.fields(n, "verb", "meaning", "owner")
	if fields == nil {
		return
	}
	text := func(key string) string {
		if v := fields[key]; v != nil && v.Kind == yamlv3.ScalarNode {
			return strings.TrimSpace(v.Value)
		}
		return ""
	}
	v := Registered{Verb: text("verb"), Meaning: text("meaning"), Owner: text("owner")}
	for _, key := range []string{"verb", "meaning", "owner"} {
		if text(key) == "" {
			d.fault(n, "%s is missing: say which verb it is, what it means and whose it is", key)
			return
		}
	}
	if err := verbs.ValidateFieldVerb(v.Verb); err != nil {
		d.fault(fields["verb"], "%v", err)
		return
	}
	if first, twice := d.seen[v.Verb]; twice {
		d.fault(fields["verb"], "verb %q stands twice, first in line %d: keep one of them", v.Verb, first)
		return
	}
	d.seen[v.Verb] = fields["verb"].Line
	if known, ok := d.out.verbs[v.Verb]; ok && known.Owner == builtInOwner {
		d.fault(fields["verb"], "verb %q is a verb of the built-in catalogue: leave it out", v.Verb)
		return
	}
	d.out.verbs[v.Verb] = v
}

// fields returns the values of an object by key, nil after a fault.
func (d *registryDecoder) fields(n *yamlv3.Node, known ...string) map[string]*yamlv3.Node {
	if n.Kind == yamlv3.AliasNode {
		n = n.Alias
	}
	if n.Kind != yamlv3.MappingNode {
		d.fault(n, "is no object: write %s", strings.Join(known, ", "))
		return nil
	}
	out := map[string]*yamlv3.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case !slices.Contains(known, key.Value):
			d.fault(key, "key %q is unknown: use %s", key.Value, strings.Join(known, ", "))
			return nil
		case out[key.Value] != nil:
			d.fault(key, "key %q stands twice: keep one of them", key.Value)
			return nil
		}
		out[key.Value] = n.Content[i+1]
	}
	return out
}
