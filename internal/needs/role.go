package needs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/verbs"
)

// Grant is verbs on one object.
type Grant struct {
	// Namespace is "" for an object without one.
	Namespace string
	Group     string
	// Resource has the subresource too: deployments/scale.
	Resource, Name string
	Verbs          []string
	// Unnamed is that of Question: a rule with names does not let such a request in.
	Unnamed bool
}

// Rules are the rules of one namespace, "" for objects without one.
type Rules struct {
	Namespace string
	Rules     []rbacv1.PolicyRule
}

// RulesOf joins grants to rules: those of a resource with equal verbs are one rule.
func RulesOf(grants []Grant) []Rules {
	type body struct{ group, resource, verbs string }
	names := map[string]map[body][]string{}
	put := func(g *Grant, of []string, name string) {
		if len(of) == 0 {
			return
		}
		if names[g.Namespace] == nil {
			names[g.Namespace] = map[body][]string{}
		}
		b := body{g.Group, g.Resource, strings.Join(of, "\x00")}
		if name == "" {
			b.resource += "\x00" // All names: never joined with rules for some.
		}
		if !slices.Contains(names[g.Namespace][b], name) {
			names[g.Namespace][b] = append(names[g.Namespace][b], name)
		}
	}
	for i := range grants {
		g := &grants[i]
		of := slices.Compact(slices.SortedFunc(slices.Values(g.Verbs), compareVerbs))
		if g.Unnamed {
			lets := func(verb string) bool { return verb == verbs.Marker || verb == "create" }
			put(g, slices.DeleteFunc(slices.Clone(of), func(verb string) bool { return !lets(verb) }), "")
			of = slices.DeleteFunc(of, lets)
		}
		put(g, of, g.Name)
	}
	var out []Rules
	for _, namespace := range slices.Sorted(maps.Keys(names)) {
		one := Rules{Namespace: namespace}
		for b, of := range names[namespace] {
			rule := rbacv1.PolicyRule{APIGroups: []string{b.group}, Resources: []string{strings.TrimSuffix(b.resource, "\x00")}, Verbs: strings.Split(b.verbs, "\x00")}
			if of[0] != "" {
				slices.Sort(of)
				rule.ResourceNames = of
			}
			one.Rules = append(one.Rules, rule)
		}
		slices.SortFunc(one.Rules, func(a, b rbacv1.PolicyRule) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		out = append(out, one)
	}
	return out
}

// Objects returns a role and a binding to the subject for each of some rules. Their name depends on all that they grant, so that the objects of
// a second question do not replace those of the first.
func Objects(subject rbacv1.Subject, all []Rules) []any {
	var out []any
	for _, r := range all {
		sum := sha256.Sum256([]byte(fmt.Sprintf("%q %q", subject, r)))
		meta := metav1.ObjectMeta{Namespace: r.Namespace, Name: "granular-" + hex.EncodeToString(sum[:5])}
		typed := func(kind string) metav1.TypeMeta {
			return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
		}
		subjects := []rbacv1.Subject{subject}
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}
		if r.Namespace == "" {
			ref.Kind = "ClusterRole"
			out = append(out,
				&rbacv1.ClusterRole{TypeMeta: typed("ClusterRole"), ObjectMeta: meta, Rules: r.Rules},
				&rbacv1.ClusterRoleBinding{TypeMeta: typed("ClusterRoleBinding"), ObjectMeta: meta, RoleRef: ref, Subjects: subjects})
			continue
		}
		out = append(out,
			&rbacv1.Role{TypeMeta: typed("Role"), ObjectMeta: meta, Rules: r.Rules},
			&rbacv1.RoleBinding{TypeMeta: typed("RoleBinding"), ObjectMeta: meta, RoleRef: ref, Subjects: subjects})
	}
	return out
}
