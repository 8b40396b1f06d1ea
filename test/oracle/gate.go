package oracle

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/verbs"
)

// gate gives a user verbs on main resources, or denies it writes, while a condition on the object holds. fieldperm has it as a
// ConditionalPolicy. The oracle evaluates the condition on what is stored.
type gate struct {
	verbs  []string
	effect v1alpha1.PolicyEffect
	on     *objectCondition
}

// objectCondition is a condition on the object in CEL, and the same condition in Go. old is nil for a new object.
type objectCondition struct {
	expression string
	holds      func(old, object *meta) bool
}

// meta are the parts of an object that conditions read. The API server stores them as the request has them. Annotations are not: autoscaling/v1 has
// metrics there.
type meta struct {
	Labels map[string]string
}

var objectConditions = []*objectCondition{
	{`"app" in object.metadata.?labels.orValue({})`, func(_, object *meta) bool { _, ok := object.Labels["app"]; return ok }},
	{`object.metadata.?labels.orValue({}).size() < 2`, func(_, object *meta) bool { return len(object.Labels) < 2 }},
	{
		`oldObject != null && object.metadata.?labels.orValue({}) == oldObject.metadata.?labels.orValue({})`,
		func(old, object *meta) bool { return old != nil && maps.Equal(old.Labels, object.Labels) },
	},
	// A condition that fails allows nothing.
	{`oldObject.metadata.labels["tier"] == object.metadata.labels["tier"]`, func(old, object *meta) bool {
		if old == nil {
			return false
		}
		before, had := old.Labels["tier"]
		after, has := object.Labels["tier"]
		return had && has && before == after
	}},
}

// gatedVerbs are the granular verbs that gates give. Most kinds have them.
var gatedVerbs = []string{"granular:*", "granular:metadata", "granular:labels", "granular:annotations", "granular:specification", "granular:status", "granular:data"}

// gatedSorts are the sorts of users with a gate.
var gatedSorts = []struct {
	name string
	draw func(d *draw, u *User, main []Place)
}{
	{"generic under a condition", func(d *draw, u *User, _ []Place) {
		u.gates = append(u.gates, &gate{[]string{"create", "update", "patch"}, v1alpha1.PolicyAllow, pick(d, objectConditions)})
	}},
	{"marker and verbs under a condition", func(d *draw, u *User, _ []Place) {
		held := []string{verbs.Marker, pick(d, gatedVerbs), pick(d, gatedVerbs)}
		slices.Sort(held)
		u.gates = append(u.gates, &gate{slices.Compact(held), v1alpha1.PolicyAllow, pick(d, objectConditions)})
	}},
	{"verbs under two conditions", func(d *draw, u *User, main []Place) {
		for _, p := range main {
			u.grant(p, verbs.Marker)
		}
		for range 2 {
			u.gates = append(u.gates, &gate{[]string{pick(d, gatedVerbs)}, v1alpha1.PolicyAllow, pick(d, objectConditions)})
		}
	}},
	{"generic, but denied under a condition", func(d *draw, u *User, main []Place) {
		for _, p := range main {
			u.grant(p, "create", "update", "patch")
		}
		u.gates = append(u.gates, &gate{[]string{"create", "update", "patch"}, v1alpha1.PolicyDeny, objectConditions[d.IntN(2)]})
	}},
}

// drawGated draws the users with gates of an epoch.
func drawGated(d *draw, epoch string, places []Place) []*User {
	main := slices.DeleteFunc(slices.Clone(places), func(p Place) bool { return p.Sub != "" })
	var out []*User
	for i, sort := range gatedSorts {
		u := &User{Name: fmt.Sprintf("g%s-%d", epoch, i), Sort: sort.name, grants: map[Place]map[string]bool{}}
		sort.draw(d, u, main)
		out = append(out, u)
	}
	return out
}

// in returns the user with the verbs of its gates for one change of the object of a request, and the gate that denies it, if one does. The
// gates are about main resources, of any group that serves the object. If the object is gone, the last request may have changed it before, so
// every gate that allows is open.
func (u *User) in(own Place, r *Request, e *Event) (*User, *gate, error) {
	at := r.Endpoint.Place
	if len(u.gates) == 0 || at.Sub != "" || own.Sub != "" || at.Resource != own.Resource {
		return u, nil, nil
	}
	object, err := metaOf(e.New)
	if err != nil {
		return nil, nil, err
	}
	old, err := metaOf(e.Old)
	if err != nil {
		return nil, nil, err
	}
	out := &User{Name: u.Name, Sort: u.Sort, grants: map[Place]map[string]bool{own: maps.Clone(u.grants[own]), at: maps.Clone(u.grants[at])}}
	for _, g := range u.gates {
		open := object == nil || g.on.holds(old, object)
		switch {
		case g.effect == v1alpha1.PolicyAllow && open:
			out.grant(at, g.verbs...)
		case g.effect == v1alpha1.PolicyDeny && object != nil && open && !onFloor(at):
			return out, g, nil
		}
	}
	return out, nil, nil
}

func metaOf(raw []byte) (*meta, error) {
	if raw == nil {
		return nil, nil
	}
	var out struct{ Metadata meta }
	return &out.Metadata, json.Unmarshal(raw, &out)
}

// publishGates writes the policies of the users and waits until they are in force.
func (w *world) publishGates(ctx context.Context, users []*User, places []Place) error {
	client, err := dynamic.NewForConfig(w.stack.Admin())
	if err != nil {
		return err
	}
	policies := client.Resource(fieldpermResource(v1alpha1.ConditionalPolicyResource))
	if err := policies.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return err
	}
	var names []string
	for _, u := range users {
		for i, g := range u.gates {
			name := fmt.Sprintf("%s-%d", u.Name, i)
			about := places
			if g.effect == v1alpha1.PolicyDeny {
				about = slices.DeleteFunc(slices.Clone(places), onFloor)
			}
			policy := &v1alpha1.ConditionalPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ConditionalPolicySpec{
				Subjects: []v1alpha1.Subject{{Kind: "User", Name: u.Name}}, Verbs: g.verbs, Effect: g.effect, Condition: g.on.expression, Resources: byGroup(about),
			}}
			policy.APIVersion, policy.Kind = v1alpha1.GroupVersion.String(), v1alpha1.ConditionalPolicyKind
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(policy)
			if err != nil {
				return err
			}
			delete(content, "status")
			if _, err := policies.Create(ctx, &unstructured.Unstructured{Object: content}, metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("policy %q: %w", name, err)
			}
			names = append(names, name)
			w.table.add(w.table.guards, "policies in force")
		}
	}
	for _, name := range names {
		for _, of := range []string{v1alpha1.ConditionCompiled, v1alpha1.ConditionEnforced} {
			if err := awaitCondition(ctx, client, v1alpha1.ConditionalPolicyResource, name, of, inForce); err != nil {
				return err
			}
		}
	}
	return nil
}

func inForce(c map[string]any) bool { return c["status"] == "True" }

// byGroup returns the main resources among places, by group.
func byGroup(places []Place) []v1alpha1.PolicyResource {
	groups := map[string][]string{}
	for _, p := range places {
		if p.Sub == "" && !slices.Contains(groups[p.Group], p.Resource) {
			groups[p.Group] = append(groups[p.Group], p.Resource)
		}
	}
	var out []v1alpha1.PolicyResource
	for _, group := range slices.SortedFunc(maps.Keys(groups), strings.Compare) {
		slices.Sort(groups[group])
		out = append(out, v1alpha1.PolicyResource{APIGroups: []string{group}, Resources: groups[group]})
	}
	return out
}
