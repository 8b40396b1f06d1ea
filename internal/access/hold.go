package access

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/internal/rbac"
	"github.com/fieldperm/fieldperm/verbs"
)

// Effect is that of a ConditionalPolicy.
type Effect string

// These are the effects.
const (
	Allow     Effect = "Allow"
	Deny      Effect = "Deny"
	NoOpinion Effect = "NoOpinion"
)

// Policy is a ConditionalPolicy about a request, as far as it is known before the objects are.
type Policy struct {
	Name   string
	Effect Effect
	// Condition is "true", "false", or an expression over the objects.
	Condition string
	// Failed means that the condition cannot be evaluated, whatever the objects are.
	Failed bool
}

// Policies are the ConditionalPolicies of a cluster.
type Policies interface {
	// About returns the policies about a verb of a user. A request without a name or a namespace stands for all.
	About(a authorizer.Attributes) []Policy
	// Subjects returns the subjects of all policies that may allow something.
	Subjects() []rbacv1.Subject
	// Verbs returns all verbs that policies name.
	Verbs() []string
}

// Grant is where a verb comes from: a role by a binding, or a policy.
type Grant struct {
	Binding rbac.Name
	Role    rbac.Name
	// Policy is the name of a ConditionalPolicy, "" for a role.
	Policy string
}

// String returns the binding with its role, or the policy.
func (g Grant) String() string {
	if g.Policy != "" {
		return "ConditionalPolicy " + g.Policy
	}
	return g.Binding.String() + " (" + g.Role.String() + ")"
}

func compareGrants(a, b Grant) int {
	return cmp.Or(cmp.Compare(a.Policy, b.Policy), a.Binding.Compare(b.Binding), a.Role.Compare(b.Role))
}

// option is one way to hold a verb.
type option struct {
	verb       string
	grants     []Grant
	conditions []Condition
}

// holder finds out how a user holds verbs on one object, or on any that no rule names.
type holder struct {
	cluster *Cluster
	write   *Write
	user    user.Info
	matches []rbac.Match
	object  object
	options map[string][]option
	denials map[string]denial
	// parameters are the results of verbsOf.
	parameters map[string][]verbs.Verb
}

// denial is what the Deny policies about a verb leave: conditions that must be true, or nothing if it always denies.
type denial struct {
	always     bool
	conditions []Condition
	about      []Policy
}

// elsewhere is a name or a namespace that no object has. It stands for all that no rule or binding names.
const elsewhere = "\x00"

// object is the object of a request. A name or a namespace may be elsewhere.
type object struct{ namespace, name string }

// attributes is the question about a verb. For RBAC, elsewhere is a name that no rule has. For policies it is not known, which is "".
func (h *holder) attributes(verb string, known bool) *authorizer.AttributesRecord {
	w := h.write
	a := &authorizer.AttributesRecord{
		User: h.user, Verb: verb, APIGroup: w.Group, APIVersion: w.Version, Resource: w.Resource, Subresource: w.Subresource,
		Namespace: h.object.namespace, Name: h.object.name, ResourceRequest: true,
	}
	if known && a.Namespace == elsewhere {
		a.Namespace = ""
	}
	if known && a.Name == elsewhere {
		a.Name = ""
	}
	return a
}

// denial returns what the policies that deny a verb leave of it. patch has the policies of update.
func (h *holder) denial(verb string) denial {
	if h.cluster.policies == nil {
		return denial{}
	}
	if d, ok := h.denials[verb]; ok {
		return d
	}
	asked := verb
	if verb == "patch" {
		asked = "update"
	}
	d := denial{about: h.cluster.policies.About(h.attributes(asked, true))}
	for _, p := range d.about {
		switch {
		case p.Effect != Deny || !p.Failed && p.Condition == "false":
		case p.Failed || p.Condition == "true":
			d.always = true
		default:
			d.conditions = append(d.conditions, not(p))
		}
	}
	h.denials[verb] = d
	return d
}

// reaching returns the denial of a verb that a role gives. On the floor none reaches the generic permission (W4).
func (h *holder) reaching(verb string) denial {
	if h.write.OnFloor && slices.Contains(h.write.generics(), verb) {
		return denial{}
	}
	return h.denial(verb)
}

// beyondDeny reports whether no Deny reaches the request: on the floor, of a user whose role has the generic permission (W4).
func (e *entry) beyondDeny(w *Write) bool {
	return w.OnFloor && e.by == Generic && len(e.options) == 1 && e.options[0].grants[0].Policy == ""
}

func not(p Policy) Condition {
	return Condition{Form: ByPolicy, Source: p.Name, CEL: "!(" + p.Condition + ")"}
}

// hold returns the ways to hold a verb, without rules that grant "*": first by roles, then by policies (K5).
func (h *holder) hold(verb string) []option {
	// Most subjects hold few of the many verbs, so that nothing is kept for the others.
	if h.cluster.policies == nil && !slices.ContainsFunc(h.matches, func(m rbac.Match) bool { return slices.Contains(m.Rule.Verbs, verb) }) {
		return nil
	}
	if found, ok := h.options[verb]; ok {
		return found
	}
	var out []option
	if d := h.reaching(verb); !d.always {
		if grants := h.granted(verb, verb); len(grants) > 0 {
			out = append(out, option{verb, grants, d.conditions})
		}
	}
	if d := h.denial(verb); !d.always {
		out = append(out, h.byPolicy(verb, d)...)
	}
	h.options[verb] = out
	return out
}

// star returns the rules that grant "*", as one way to hold a verb. It has no grants if there is none.
func (h *holder) star(verb string) (option, bool) {
	if !slices.ContainsFunc(h.matches, func(m rbac.Match) bool { return slices.Contains(m.Rule.Verbs, rbacv1.VerbAll) }) {
		return option{}, false
	}
	d := h.reaching(verb)
	grants := h.granted(verb, rbacv1.VerbAll)
	return option{rbacv1.VerbAll, grants, d.conditions}, !d.always && len(grants) > 0
}

// granted returns the bindings of rules that allow a verb and have a text among their verbs: the verb itself, or "*".
func (h *holder) granted(verb, text string) []Grant {
	return h.grantedAs(h.attributes(verb, false), text)
}

func (h *holder) grantedAs(asked *authorizer.AttributesRecord, text string) []Grant {
	var out []Grant
	for i := range h.matches {
		if m := &h.matches[i]; slices.Contains(m.Rule.Verbs, text) && m.Allows(asked) {
			out = append(out, Grant{Binding: m.Binding, Role: m.Role})
		}
	}
	slices.SortFunc(out, compareGrants)
	return slices.Compact(out)
}

// posted returns the ways in which a POST with a verb passes authorization. It has no name there, so that rules for some names do not count.
func (h *holder) posted(verb, text string) []option {
	d := h.denial(verb)
	if d.always {
		return nil
	}
	var out []option
	asked := h.attributes(verb, false)
	asked.Name = ""
	if grants := h.grantedAs(asked, text); len(grants) > 0 {
		out = append(out, option{text, grants, d.conditions})
	}
	if text != rbacv1.VerbAll {
		out = append(out, h.byPolicy(verb, d)...)
	}
	return out
}

// byPolicy returns a way for each policy that may allow the verb. A policy with NoOpinion takes the place of all that allow.
func (h *holder) byPolicy(verb string, d denial) []option {
	var out []option
	left := slices.Clone(d.conditions)
	for _, p := range d.about {
		if p.Effect != NoOpinion || !p.Failed && p.Condition == "false" {
			continue
		}
		if p.Failed || p.Condition == "true" {
			return nil
		}
		left = append(left, not(p))
	}
	for _, p := range d.about {
		if p.Effect != Allow || p.Failed || p.Condition == "false" {
			continue
		}
		conditions := slices.Clone(left)
		if p.Condition != "true" {
			if !h.write.TakesMarker {
				continue // Where admission does not see the objects, nothing evaluates the condition.
			}
			conditions = append([]Condition{{Form: ByPolicy, Source: p.Name, CEL: p.Condition}}, conditions...)
		}
		out = append(out, option{verb, []Grant{{Policy: p.Name}}, conditions})
	}
	return out
}

// verbsOf returns the verbs with a parameter, of a verb without, that rules and policies name.
func (h *holder) verbsOf(base string) []verbs.Verb {
	if found, ok := h.parameters[base]; ok {
		return found
	}
	var out []verbs.Verb
	add := func(texts []string) {
		for _, text := range texts {
			if !strings.HasPrefix(text, base) {
				continue
			}
			v, err := verbs.Parse(text)
			if err == nil && v.HasParameter() && v.WithoutParameter().String() == base && !slices.Contains(out, v) {
				out = append(out, v)
			}
		}
	}
	for i := range h.matches {
		add(h.matches[i].Rule.Verbs)
	}
	if h.cluster.policies != nil {
		add(h.cluster.policies.Verbs())
	}
	slices.SortFunc(out, func(a, b verbs.Verb) int { return cmp.Compare(a.String(), b.String()) })
	h.parameters[base] = out
	return out
}
