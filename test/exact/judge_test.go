package exact

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
)

// diff is the signature of Diff.
type diff func(ctx context.Context, old, new []byte, kind *schema.Kind, uncovered schema.VerbSet) ([]fieldperm.Requirement, error)

// answer is the result of one Diff.
type answer struct {
	// charges are in the order of their creation.
	charges []string
	// refused is the path at which an object does not fit. failed says that Diff returned an error.
	refused string
	failed  bool
	// message is for reports. It is not compared.
	message string
	// requirements are the source of the charges.
	requirements []fieldperm.Requirement
}

func (a answer) equal(b answer) bool {
	return a.failed == b.failed && a.refused == b.refused && slices.Equal(a.charges, b.charges)
}

func (a answer) String() string {
	if a.failed {
		return "error: " + a.message
	}
	return "[" + strings.Join(a.charges, "\n   ") + "]"
}

func (a answer) sorted() []string { return slices.Sorted(slices.Values(a.charges)) }

// run calls one Diff. A panic is a result too, so that the case can be reported and made smaller.
func run(d diff, old, new []byte, s *subject) (a answer) {
	defer func() {
		if r := recover(); r != nil {
			a = answer{failed: true, refused: "panic", message: fmt.Sprintf("panic: %v", r)}
		}
	}()
	requirements, err := d(context.Background(), old, new, s.kind, s.uncovered)
	if err != nil {
		a.failed, a.message, a.refused = true, err.Error(), "no InvalidObjectError"
		if invalid := (*fieldperm.InvalidObjectError)(nil); errors.As(err, &invalid) {
			a.refused = invalid.Path
		}
		if requirements != nil {
			a.refused = "an error and requirements"
		}
		return a
	}
	a.requirements, a.charges = requirements, shown(requirements)
	return a
}

func shown(requirements []fieldperm.Requirement) []string {
	var out []string
	for _, r := range requirements {
		out = append(out, charge{operation: string(r.Operation), path: r.Path.String(), chain: r.Chain, barrier: r.Barrier}.String())
	}
	return out
}

// judges are the two ways to call Diff. The oracle judges both, and neither of them judges the oracle.
type judges struct{ fast, within diff }

func theJudges() judges { return judges{fieldperm.Diff, within} }

// within calls Diff as admission does: both objects are in one text, and the second one is scanned with the first one as its model.
func within(ctx context.Context, old, new []byte, kind *schema.Kind, uncovered schema.VerbSet) ([]fieldperm.Requirement, error) {
	doc, err := rawjson.Scan(review(old, new))
	if err != nil {
		return nil, err
	}
	defer doc.Release()
	request := doc.Root().Get("request")
	return fieldperm.DiffValues(ctx, request.Get("oldObject"), request.Get("object"), kind, uncovered)
}

// review puts both objects into one text, in either order.
func review(old, new []byte) []byte {
	switch {
	case old == nil:
		return slices.Concat([]byte(`{"request":{"object":`), new, []byte(`}}`))
	case len(new)%3 == 0:
		return slices.Concat([]byte(`{"request": {"oldObject": `), old, []byte(`, "more": [`), new, []byte(`], "object": `), new, []byte("}}\n"))
	}
	return slices.Concat([]byte(`{"request":{"uid":"x","object":`), new, []byte(`,"oldObject":`), old, []byte(`,"options":{}}}`))
}

// scans reports whether a review of two texts is accepted as JSON exactly if it is valid JSON.
func scans(old, new []byte) bool {
	body := review(old, new)
	doc, err := rawjson.Scan(body)
	if err == nil {
		doc.Release()
	}
	_, want := parseWhole(body)
	return (err == nil) == (want == nil)
}

// verdict has the findings about a pair.
type verdict struct {
	// wrong is empty if all results agree.
	wrong string
	// silent is the reason why the oracle gives no result.
	silent string
	fast   answer
	oracle string
}

func (j judges) judge(p *pair) (v verdict) {
	v.fast = run(j.fast, p.oldText, p.newText, p.subject)
	if again := run(j.fast, p.oldText, p.newText, p.subject); !again.equal(v.fast) {
		v.wrong = fmt.Sprintf("asked again, the answer is %s", again)
	}
	var charges, refused []string
	var err error
	if p.broken == "" {
		if inside := run(j.within, p.oldText, p.newText, p.subject); v.wrong == "" && !inside.equal(v.fast) {
			v.wrong = fmt.Sprintf("in one text Diff says %s", inside)
		}
		charges, refused, err = p.ask(p.old, p.new)
	}
	switch {
	case p.broken != "":
		v.oracle = "no JSON: " + p.broken
		if v.wrong == "" && (!v.fast.failed || v.fast.refused != "" || !scans(p.oldText, p.newText)) {
			v.wrong = "a text that is no JSON is accepted"
		}
	case err != nil:
		v.silent, v.oracle = err.Error(), "cannot say: "+err.Error()
	case len(refused) > 0:
		v.oracle = fmt.Sprintf("error at one of %q", refused)
		if v.wrong == "" && (!v.fast.failed || !slices.ContainsFunc(refused, func(at string) bool { return at == v.fast.refused || at == "" && v.fast.refused == "." })) {
			v.wrong = "the oracle refuses"
		}
	default:
		v.oracle = "[" + strings.Join(charges, "\n   ") + "]"
		if v.wrong == "" && (v.fast.failed || !slices.Equal(ofValues(charges), ofValues(v.fast.sorted()))) {
			v.wrong = "the oracle differs"
		}
		if missed := v.fast.missed(charges); v.wrong == "" && missed != "" {
			v.wrong = fmt.Sprintf("D8: %q is not charged", missed)
		}
		if v.wrong == "" && slices.ContainsFunc(v.fast.charges, isOfOwners) && !p.kind.IsScale() && p.kind.ConvertsByName() && p.owners(p.old) == p.owners(p.new) {
			v.wrong = "D8: owners are charged, and none change"
		}
	}
	if v.wrong == "" {
		v.wrong = j.law(p, v)
	}
	if v.wrong == "" {
		v.wrong = v.fast.disorder(p.kind.Lossy())
	}
	// A requirement is read long after its Diff, when other calls have run.
	if v.wrong == "" && !slices.Equal(shown(v.fast.requirements), v.fast.charges) {
		v.wrong = fmt.Sprintf("read again, the answer is %q", shown(v.fast.requirements))
	}
	return v
}

func isOfOwners(charge string) bool {
	operation, _ := split(charge)
	return operation == owned
}

// ofValues returns the charges for changes of values. Where a value changes, the place may be charged to owners as well.
func ofValues(charges []string) []string {
	return slices.DeleteFunc(slices.Clone(charges), isOfOwners)
}

// missed returns a charge of the oracle for owners that a user may miss who meets all charges, "" if there is none. The oracle says for which
// owners a verb is asked at least. What the next apply of a manager changes, Diff asks structured-merge-diff.
func (a answer) missed(charges []string) string {
	i := slices.IndexFunc(charges, func(want string) bool {
		return isOfOwners(want) && !slices.ContainsFunc(a.charges, func(got string) bool {
			return !slices.ContainsFunc(coveredBy(got), func(verb string) bool { return !slices.Contains(coveredBy(want), verb) })
		})
	})
	if i < 0 {
		return ""
	}
	return charges[i]
}

// coveredBy returns the verbs any one of which meets a charge. They do not contain the generic verb: it meets a charge without a barrier.
func coveredBy(charge string) []string {
	_, verbs, _ := strings.Cut(charge[strings.LastIndex(charge, ": "):], ":")
	if _, behind, barred := strings.Cut(verbs, " | "); barred {
		return slices.DeleteFunc(strings.Fields(behind), func(verb string) bool { return behind == "no verb" })
	}
	return append(strings.Fields(verbs), "generic")
}

// owners returns the managedFields of an object as a text.
func (s *subject) owners(v *value) string {
	if fields := v.get("metadata").get("managedFields"); fields != nil {
		return fields.canonical()
	}
	return ""
}

// disorder checks the order of the charges: changes of owners come after all changes of values (D8), and charges for fields that a version
// does not show come last (C3).
func (a answer) disorder(lossy bool) string {
	charges := a.charges
	for len(charges) > 0 {
		last := charges[len(charges)-1]
		if _, path := split(last); path != "." || !lossy && !strings.Contains(last, ": | ") {
			break
		}
		charges = charges[:len(charges)-1]
	}
	last := ""
	for _, c := range charges {
		operation, _ := split(c)
		if last == owned && operation != owned {
			return fmt.Sprintf("D8: %q comes after a change of owners", c)
		}
		last = operation
	}
	return ""
}

// law checks the rules of D10 for a pair: places that are not charged are equal, an object does not differ from itself, and the swapped
// pair has the same paths.
func (j judges) law(p *pair, v verdict) string {
	if v.fast.failed {
		return ""
	}
	// A write of a Scale changes owners, although it may change no value.
	if same := run(j.fast, p.newText, p.newText, p.subject); !p.kind.Lossy() && !p.kind.IsScale() && (same.failed && same.refused != "" || len(same.charges) > 0) {
		return fmt.Sprintf("D10: the new object differs from itself: %v", same)
	}
	if p.old == nil {
		return ""
	}
	if len(v.fast.charges) == 0 && p.bare(p.old) != p.bare(p.new) {
		return "D10: nothing is charged, and the objects differ"
	}
	back := run(j.fast, p.newText, p.oldText, p.subject)
	there, again := v.fast.paths(back), back.paths(v.fast)
	if !slices.Equal(there, again) {
		there, again = p.withoutWritten(there), p.withoutWritten(again)
	}
	if back.failed || !slices.Equal(there, again) {
		return fmt.Sprintf("D10: swapped, the paths are %q", again)
	}
	return ""
}

// withoutWritten removes the paths that the server writes because of another field in one direction (D13): back, no cause changes so.
func (p *pair) withoutWritten(paths []string) []string {
	var written []string
	for _, pair := range [][2]*value{{p.old, p.new}, {p.new, p.old}} {
		if o, refused, err := p.charges(pair[0], pair[1]); err == nil && len(refused) == 0 {
			written = append(written, o.written...)
		}
	}
	return slices.DeleteFunc(paths, func(path string) bool {
		return slices.ContainsFunc(written, func(above string) bool {
			below, is := strings.CutPrefix(path, above)
			return is && (below == "" || strings.ContainsAny(below[:1], ".["))
		})
	})
}

// paths removes the charges that can occur in one direction only: owners that an API server merges, and places where a barrier holds in one
// direction, because such a barrier may be the reason for a charge inside an atomic value.
func (a answer) paths(other answer) []string {
	barred := map[string]bool{}
	for _, c := range slices.Concat(a.charges, other.charges) {
		if _, path := split(c); strings.Contains(c, " |") {
			barred[path] = true
		}
	}
	var out []string
	for _, c := range a.charges {
		if operation, path := split(c); operation != owned && !barred[path] {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func split(charge string) (operation, path string) {
	operation, rest, _ := strings.Cut(charge, " ")
	path, _, _ = strings.Cut(rest, ": ")
	return operation, path
}

// bare is an object without the fields that have a role (D7, D8), and without containers that become empty by that.
func (s *subject) bare(v *value) string {
	out := bareAt(v, s.kind.Root)
	if out == nil {
		out = &value{kind: object} // All fields of the object are free.
	}
	return out.canonical()
}

func bareAt(v *value, n *schema.Node) *value {
	if n.Role() == schema.RoleServerWritten || n.Role() == schema.RoleOwnership {
		return nil
	}
	if !v.is(object) || n.Map() == nil || v.repeats() || n.Map().Atomic() {
		return v
	}
	out := &value{kind: object}
	for _, m := range v.members {
		if b := bareAt(m.value, n.Map().Child(m.name)); b != nil {
			out.members = append(out.members, member{m.name, b})
		}
	}
	if len(out.members) == 0 && (len(v.members) > 0 || n.Map().Child("managedFields").Role() == schema.RoleOwnership) {
		return nil
	}
	return out
}
