package fieldrole

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/internal/anyvalue"
	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/internal/needs"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/verbs"
)

// rootVerb is the verb of the root of every kind.
const rootVerb = "granular:*"

// Rule is what a role grants on one resource or subresource.
type Rule struct {
	Target *Target
	// Subresource is "" for the object itself.
	Subresource string
	// Verbs begin with the marker. None of the others can be left out.
	Verbs []string
	// Updates means that the rule lets updates and patches in, which takes get as well (A7).
	Updates bool
	// Fields are the fields that were asked for.
	Fields []Field
	// Also is what the verbs cover besides these fields.
	Also []Surplus
	// Powers are the powers of the verbs.
	Powers []string
	// Notes explain what the rule does not grant, and other ways to write the fields.
	Notes []string
	// Creates are the fields that the API server may set in a new object, and that the verbs do not cover.
	Creates []string
}

// Field is a field that was asked for.
type Field struct {
	Path string
	// Verbs cover the field: one, or one for each object that the field becomes a part of, if a barrier is at it.
	Verbs []string
	// Barrier means that update and create do not cover the field.
	Barrier bool
	// Whole is the path above that changes as a whole with the field, "" if the field changes alone.
	Whole string
	// Without says which changes of the field, or of what is below it, need other verbs.
	Without []string

	place *fieldtree.Place
	// isPrefix means that the last step of place is every key that begins with it.
	isPrefix bool
	// unplaced means that the schema does not know the field, and place is the object.
	unplaced bool
}

// Options say what a role may have.
type Options struct {
	// Wildcard allows granular:*, which covers every field without a barrier.
	Wildcard bool
	// Subresources are those through which the fields are written as well. Only means that the resource itself is left out.
	Subresources []string
	Only         bool
}

// Fields returns the rules for fields, with the fewest and most specific verbs.
func (t *Target) Fields(ctx context.Context, fields []string, o Options) ([]*Rule, error) {
	way, err := t.route(fields, o)
	if err != nil {
		return nil, err
	}
	var out []*Rule
	for _, w := range way {
		rule, err := t.rule(ctx, w, o)
		if err != nil {
			return nil, err
		}
		out = append(out, rule)
	}
	return out, nil
}

// Through returns the rule for fields that are all written through one resource or subresource.
func (t *Target) Through(ctx context.Context, subresource string, fields []string, o Options) (*Rule, error) {
	way, err := t.through(subresource, fields)
	if err != nil {
		return nil, err
	}
	return t.rule(ctx, way, o)
}

// rule finds the least verbs, and has anyvalue judge them.
func (t *Target) rule(ctx context.Context, w *way, o Options) (*Rule, error) {
	out := &Rule{Target: t, Subresource: w.subresource, Updates: true}
	if !endpoint.TakesMarker(t.Group, t.Resource, w.subresource) {
		return nil, fmt.Errorf("resource %q: granular verbs do not let writes of it in: grant create, update and patch", out.resource())
	}
	asked := []string{}
	for i := range w.fields {
		f, err := w.find(i, o)
		if err != nil {
			return nil, err
		}
		asked = append(asked, f.Verbs...)
		out.Fields = append(out.Fields, *f)
	}
	asked = distinct(asked)
	before, err := judge(ctx, asked, out.Fields)
	if err != nil {
		return nil, err
	}
	for i := range before {
		f := &out.Fields[i]
		if before[i].Outcome == anyvalue.No {
			return nil, fmt.Errorf("path %q of %s: the verbs %q do not cover it: %s", f.Path, t.Kind, f.Verbs, before[i].Reason(out.resource()))
		}
		f.Without = append(f.Without, before[i].Why...)
	}
	least, err := needs.Smallest(asked, func(of []string) (bool, error) {
		now, err := judge(ctx, of, out.Fields)
		return err == nil && slices.EqualFunc(now, before, sameAnswer), err
	})
	if err != nil {
		return nil, err
	}
	for i := range out.Fields {
		// Another verb of the role covers the field, if its own was left out.
		f := &out.Fields[i]
		if !slices.ContainsFunc(f.Verbs, func(v string) bool { return !slices.Contains(least, v) }) {
			continue
		}
		f.Verbs = nil
		for _, chain := range f.place.Chains() {
			for _, l := range slices.Backward(chain) {
				if len(l.Lost) == 0 && slices.Contains(least, l.Verb) {
					f.Verbs = append(f.Verbs, l.Verb)
					break
				}
			}
		}
		f.Verbs = distinct(f.Verbs)
	}
	slices.Sort(least)
	out.Verbs = append([]string{verbs.Marker}, least...)
	out.describe(w.tree)
	if err := out.companions(ctx, w.tree); err != nil {
		return nil, err
	}
	out.Notes = append(out.Notes, w.notes...)
	return out, nil
}

func sameAnswer(a, b anyvalue.Answer) bool {
	return a.Outcome == b.Outcome && slices.Equal(a.Why, b.Why)
}

// find returns a field with its most specific verbs.
func (w *way) find(i int, o Options) (*Field, error) {
	path, below := w.fields[i], false
	text := path.body
	if head, isPrefix := strings.CutSuffix(text, `/*"]`); isPrefix {
		text, below = head+`/"]`, true
	}
	p, err := w.tree.Find(text)
	switch {
	case err != nil:
		return nil, err
	case strings.Contains(text, `/*"]`):
		return nil, fmt.Errorf("path %q of %s: a prefix of keys is not the last step: name each key, or [*] for all keys", path.stored, w.tree.Kind)
	}
	if err := changeable(p, path.stored); err != nil {
		return nil, err
	}
	if err := w.selects(p, path.stored); err != nil {
		return nil, err
	}
	out := &Field{Path: path.stored, place: p, isPrefix: below}
	chains := p.Chains()
	if whole := w.charged(p); whole != nil {
		// A barrier within a value that changes as a whole is passed by its own verb beside that of the value.
		chains = slices.DeleteFunc(chains, func(chain []fieldtree.Link) bool { return !isBarred(chain) })
		chains = append(whole.Chains(), chains...)
		out.place, out.isPrefix = whole, false
		out.Whole = askedFor(out).path()
	}
	for _, chain := range chains {
		l := specific(chain)
		switch {
		case l == nil:
			return nil, fmt.Errorf("path %q of %s: no granular verb covers it for every value: grant update", path.stored, w.tree.Kind)
		case l.Verb == rootVerb && !o.Wildcard:
			return nil, fmt.Errorf("path %q of %s: only %s covers it, and with it every field that no barrier guards: give the field a verb (docs/guide/schema-authors.md), or add --allow-wildcard", path.stored, w.tree.Kind, rootVerb)
		case below && chain[len(chain)-1].Unbound:
			return nil, fmt.Errorf("path %q of %s: %s takes whole keys, and no prefix of them: name each key", path.stored, w.tree.Kind, chain[len(chain)-1].Of.Text)
		}
		out.Verbs = append(out.Verbs, l.Verb)
		out.Barrier = out.Barrier || isBarred(chain)
	}
	out.Verbs = distinct(out.Verbs)
	if below {
		out.Without = w.singledOut(text)
	}
	return out, nil
}

// isBarred reports whether a barrier may take the place out of the generic permission.
func isBarred(chain []fieldtree.Link) bool {
	return len(chain[0].Lost) > 0
}

// charged returns the place that a change of a field changes as a whole, nil if the field changes alone: the first atomic value on the way, or
// the item that the field identifies.
func (w *way) charged(p *fieldtree.Place) *fieldtree.Place {
	if whole := p.Whole(); whole != nil {
		return whole
	}
	n := w.root
	for i, e := range p.Path {
		if list := n.List(); e.Any && list != nil {
			if i+1 < len(p.Path) && slices.ContainsFunc(list.Keys(), func(k schema.Key) bool { return k.Name == p.Path[i+1].Name }) {
				// A change of a key removes the item and adds another one, with other parameters.
				if item, err := p.Kind.Find(p.Path[:i+1].String()); err == nil {
					return item
				}
			}
		}
		if n = n.Step(e); n == nil {
			return nil
		}
	}
	return nil
}

// changeable returns an error for a field about which no verb decides, or that is a part of one.
func changeable(p *fieldtree.Place, path string) error {
	for i := range len(p.Path) + 1 {
		above, err := p.Kind.Find(p.Path[:i].String())
		if err != nil {
			return err
		}
		switch above.Node().Role {
		case schema.RoleServerWritten:
			return fmt.Errorf("path %q of %s: is written by the API server, whatever the user sends: leave it out", path, p.Kind.Kind)
		case schema.RoleIdentity:
			return fmt.Errorf("path %q of %s: identifies the object and needs no verb: leave it out", path, p.Kind.Kind)
		case schema.RoleOwnership:
			return fmt.Errorf("path %q of %s: to change the owner of a field takes the verb of that field: name that field", path, p.Kind.Kind)
		case schema.RoleNone:
		}
	}
	return nil
}

// specific returns the most specific verb of a chain that covers the place for every value, nil for none.
func specific(chain []fieldtree.Link) *fieldtree.Link {
	for i := range slices.Backward(chain) {
		if l := &chain[i]; l.Of != nil && len(l.Lost) == 0 && !l.Unbound {
			return l
		}
	}
	return nil
}

// singledOut returns the keys below a prefix of keys that have verbs of their own.
func (w *way) singledOut(text string) []string {
	above, prefix, _ := strings.Cut(text, `["`)
	prefix = strings.TrimSuffix(prefix, `"]`)
	p, err := w.tree.Find(above)
	if err != nil {
		return nil
	}
	var out []string
	for _, c := range p.Node().Children {
		if !c.Any && c.Name != prefix && strings.HasPrefix(c.Name, prefix) {
			for _, v := range c.Verbs {
				out = append(out, fmt.Sprintf("the key %s needs %s", c.Name, v.Text))
			}
		}
	}
	return out
}

// maxDifferences bounds the different answers about what is below a field. An administrator takes what the comments except for all that is
// excepted, so the comments say if there are more.
const maxDifferences = 64

// judge returns the answers of anyvalue about each field for a holder of the verbs.
func judge(ctx context.Context, of []string, fields []Field) ([]anyvalue.Answer, error) {
	j := &anyvalue.Judge{Holdings: &anyvalue.Holdings{Authorizer: holder(of)}, Verb: "patch", TakesMarker: true, Differences: maxDifferences}
	out := make([]anyvalue.Answer, 0, len(fields))
	for i := range fields {
		answer, err := j.Field(ctx, fields[i].place)
		if err != nil {
			return nil, err
		}
		out = append(out, answer)
	}
	return out, nil
}

// holder holds the marker with get, and some verbs.
type holder []string

// Authorize reports whether a verb is held.
func (h holder) Authorize(_ context.Context, verb string, _ bool) (fieldperm.AuthorizerDecision, error) {
	return fieldperm.AuthorizerDecision{Outcome: fieldperm.OutcomeOf(verb == verbs.Marker || verb == readVerb || slices.Contains(h, verb))}, nil
}

func distinct(texts []string) []string {
	var out []string
	for _, text := range texts {
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

// resource returns the resource with its subresource and group: deployments/scale.apps.
func (r *Rule) resource() string {
	text := r.name()
	if r.Target.Group != "" {
		text += "." + r.Target.Group
	}
	return text
}

// name returns the resource with its subresource, as in rules of RBAC.
func (r *Rule) name() string {
	return endpoint.Ref{Resource: r.Target.Resource, Subresource: r.Subresource}.Name()
}
