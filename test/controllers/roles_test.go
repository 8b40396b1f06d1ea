//go:build controllers

package controllers

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	marker     = "granular"
	autoupdate = "rbac.authorization.kubernetes.io/autoupdate"
)

// parameterless are, for each resource, verbs whose parameter is dropped: it comes from the objects of the scenario and not from the controller, or
// the controller alone writes all conditions of the kind.
var parameterless = map[string][]string{
	"endpoints":                       {"granular:label"},
	"endpointslices":                  {"granular:label", "granular:annotation"},
	"replicasets":                     {"granular:annotation"},
	"persistentvolumeclaims/status":   {"granular:condition"},
	"deployments/status":              {"granular:condition"},
	"replicasets/status":              {"granular:condition"},
	"replicationcontrollers/status":   {"granular:condition"},
	"statefulsets/status":             {"granular:condition"},
	"daemonsets/status":               {"granular:condition"},
	"jobs/status":                     {"granular:condition"},
	"horizontalpodautoscalers/status": {"granular:condition"},
	"poddisruptionbudgets/status":     {"granular:condition"},
	"namespaces/status":               {"granular:condition"},
	"servicecidrs/status":             {"granular:condition"},
}

// role is a ClusterRole of controllers, and who holds it.
type role struct {
	rbacv1.ClusterRole
	users []string
	// original are the rules that kube-apiserver made, and kept the resources whose update and patch stay.
	original []rbacv1.PolicyRule
	kept     []string
	// granular are the verbs in place of update and patch.
	granular map[resource]map[string]bool
}

// clusterRoles returns the ClusterRoles with update or patch that controllers hold.
func (r *run) clusterRoles() []*role {
	r.t.Helper()
	rbac := r.world.client.RbacV1()
	bindings, err := rbac.ClusterRoleBindings().List(r.t.Context(), metav1.ListOptions{})
	must(r.t, err)
	found := map[string]*role{}
	for _, b := range bindings.Items {
		for _, s := range b.Subjects {
			user := s.Name
			if s.Kind == rbacv1.ServiceAccountKind {
				user = "system:serviceaccount:" + s.Namespace + ":" + s.Name
			}
			if !controller(user) {
				continue
			}
			name := b.RoleRef.Name
			if found[name] == nil {
				object, err := rbac.ClusterRoles().Get(r.t.Context(), name, metav1.GetOptions{})
				must(r.t, err)
				found[name] = &role{ClusterRole: *object, granular: map[resource]map[string]bool{}}
			}
			found[name].users = append(found[name].users, user)
		}
	}
	var out []*role
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if slices.ContainsFunc(found[name].Rules, updates) {
			out = append(out, found[name])
		}
	}
	return out
}

func updates(rule rbacv1.PolicyRule) bool {
	return slices.Contains(rule.Verbs, "update") || slices.Contains(rule.Verbs, "patch")
}

// served returns the resources that the API server serves.
func (r *run) served() map[resource]bool {
	r.t.Helper()
	_, lists, err := r.world.client.ServerGroupsAndResources()
	must(r.t, err)
	out := map[resource]bool{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		must(r.t, err)
		for _, s := range list.APIResources {
			out[resource{version.Group, s.Name}] = true
		}
	}
	return out
}

// tighten takes update and patch out of the roles and puts the verbs of the evidence in their place. A role whose users updated nothing stays
// as it is: there is no evidence of what they need. It stands for kubectl fieldperm tighten.
func tighten(t *testing.T, roles []*role, e evidence, served map[resource]bool) []*role {
	t.Helper()
	events := eventVerbs(e)
	var out []*role
	for _, r := range roles {
		var rules []rbacv1.PolicyRule
		for _, rule := range r.Rules {
			rules = append(rules, r.strip(rule, served)...)
		}
		used := false
		for _, user := range r.users {
			for written, u := range e[user] {
				used = r.add(written, u.verbs, r.Rules) || used
			}
		}
		if !used {
			t.Logf("%s stays as it is: its users updated nothing", r.Name)
			continue
		}
		for written := range events {
			r.add(resource{written, "events"}, events[written], r.Rules)
		}
		r.original, r.Rules = r.Rules, rules
		out = append(out, r)
	}
	return out
}

// eventVerbs returns the verbs of Events by group. What a client changes of an Event that exists depends on how often something happens, and is
// the same code in all controllers: each gets the verbs of all.
func eventVerbs(e evidence) map[string]map[string]int {
	out := map[string]map[string]int{}
	for _, resources := range e {
		for r, u := range resources {
			if r.name != "events" {
				continue
			}
			if out[r.group] == nil {
				out[r.group] = map[string]int{}
			}
			maps.Copy(out[r.group], u.verbs)
		}
	}
	return out
}

// strip returns a rule without update and patch, except on resources that fieldperm does not decide on.
func (r *role) strip(rule rbacv1.PolicyRule, served map[resource]bool) []rbacv1.PolicyRule {
	if !updates(rule) {
		return []rbacv1.PolicyRule{rule}
	}
	var out []rbacv1.PolicyRule
	rest := *rule.DeepCopy()
	rest.Verbs = slices.DeleteFunc(rest.Verbs, func(v string) bool { return v == "update" || v == "patch" })
	if len(rest.Verbs) > 0 {
		out = append(out, rest)
	}
	stays := *rule.DeepCopy()
	stays.Verbs = slices.DeleteFunc(stays.Verbs, func(v string) bool { return v != "update" && v != "patch" })
	stays.Resources = slices.DeleteFunc(stays.Resources, func(name string) bool {
		return !slices.ContainsFunc(stays.APIGroups, func(group string) bool { return undecided(resource{group, name}, served) })
	})
	if len(stays.Resources) > 0 {
		out = append(out, stays)
		r.kept = append(r.kept, stays.Resources...)
	}
	return out
}

// undecided reports whether update and patch stay on a resource: fieldperm does not decide on its writes (A2 of docs/semantics.md), or a
// controller could not stay the leader while fieldperm is down.
func undecided(r resource, served map[resource]bool) bool {
	if strings.Contains(r.name, "*") || r.group == "*" {
		return false
	}
	_, sub, _ := strings.Cut(r.name, "/")
	return r.group == "coordination.k8s.io" || r.group == "admissionregistration.k8s.io" || sub == "finalizers" || sub == "binding" || r.group != "extensions" && !served[r]
}

// add grants the verbs where a rule of the role grants update or patch now, and reports whether there is such a rule. The most specific rule
// counts.
func (r *role) add(written resource, verbs map[string]int, rules []rbacv1.PolicyRule) bool {
	var best *resource
	for _, rule := range rules {
		if !updates(rule) {
			continue
		}
		for _, group := range rule.APIGroups {
			for _, name := range rule.Resources {
				_, sub, _ := strings.Cut(written.name, "/")
				if (group == written.group || group == "*") && (name == written.name || name == "*" || sub != "" && name == "*/"+sub) {
					if best == nil || strings.Contains(best.name, "*") {
						best = &resource{group, name}
					}
				}
			}
		}
	}
	if best == nil || best.group == "admissionregistration.k8s.io" {
		return false
	}
	if r.granular[*best] == nil {
		r.granular[*best] = map[string]bool{}
	}
	r.granular[*best][marker] = true
	for verb := range verbs {
		if name, _, found := strings.Cut(verb, "("); found && slices.Contains(parameterless[best.name], name) {
			verb = name
		}
		r.granular[*best][verb] = true
	}
	return true
}

// unused returns the resources that lose update and patch without a verb in their place.
func (r *role) unused() []string {
	var out []string
	for _, rule := range r.original {
		if !updates(rule) {
			continue
		}
		for _, group := range rule.APIGroups {
			for _, name := range rule.Resources {
				if at := (resource{group, name}); group != "extensions" && r.granular[at] == nil && !slices.Contains(r.kept, name) {
					out = append(out, at.String())
				}
			}
		}
	}
	return out
}

// object returns the ClusterRole as it is to be applied.
func (r *role) object() *rbacv1.ClusterRole {
	out := &rbacv1.ClusterRole{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{
			Name: r.Name, Labels: r.Labels,
			// Without it kube-apiserver adds update and patch again when it starts.
			Annotations: map[string]string{autoupdate: "false"},
		},
		Rules: slices.Clone(r.Rules),
	}
	for _, at := range slices.SortedFunc(maps.Keys(r.granular), func(a, b resource) int { return strings.Compare(a.group+" "+a.name, b.group+" "+b.name) }) {
		out.Rules = append(out.Rules, rbacv1.PolicyRule{APIGroups: []string{at.group}, Resources: []string{at.name}, Verbs: slices.Sorted(maps.Keys(r.granular[at]))})
	}
	return out
}

// replaceRoles puts the roles in the place of those that kube-apiserver made, and waits until they are in force.
func (r *run) replaceRoles(roles []*role) {
	r.t.Helper()
	rbac, ctx := r.world.client.RbacV1(), r.t.Context()
	for _, replaced := range roles {
		_, err := rbac.ClusterRoles().Update(ctx, replaced.object(), metav1.UpdateOptions{})
		must(r.t, err)
	}
	must(r.t, r.stack.AwaitGrants(ctx))
	must(r.t, r.stack.AwaitKind(ctx, schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "ConfigMap"))
	r.world.noUpdate(ctx, roles)
}

// noUpdate fails the test if a user of the roles still holds update or patch where its role lost both.
func (w *world) noUpdate(ctx context.Context, roles []*role) {
	w.t.Helper()
	for _, r := range roles {
		for at := range r.granular {
			if strings.Contains(at.name, "*") {
				continue
			}
			for _, user := range r.users {
				for _, verb := range []string{"update", "patch"} {
					if allowed, why := w.holds(ctx, user, verb, at); allowed {
						w.t.Errorf("%s still holds %s on %s: %s", user, verb, at, why)
					}
				}
			}
		}
	}
}
