package rbac

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// The material of grants and questions. Each value has similar ones beside it: another case, a star that is not a wildcard, a name
// with a separator. No user is a node, because the Node authorizer could answer for nodes.
var (
	someNamespaces = []string{"shop", "other", "third"}
	someUsers      = []string{"alice", "Alice", "bob", "böb", "用户", "a b", "*", "shop/alice", "alice\x00", "shop\x00alice", "system:anonymous", "system:kube-scheduler",
		"system:serviceaccount:shop:robot", "system:serviceaccount:other:robot", "system:serviceaccount:shop:Robot", "system:serviceaccount:shop:", "system:serviceaccount:shop:robot:x", "system:serviceaccount::robot", "robot"}
	someGroups = []string{"dev", "Dev", "ops", "größe", "shop/dev", "shop\x00dev", "*", "alice", "system:authenticated", "system:unauthenticated",
		"system:serviceaccounts", "system:serviceaccounts:shop", "system:nodes"}
	someAccounts   = []string{"robot", "far", "robot.x"}
	someRoles      = []string{"viewer", "Viewer", "rôle", "granular:scaler", "with space", "角色", "a\"b"}
	someVerbs      = []string{"get", "GET", "update", "granular", "granular:*", "granular:scale", "granular:label(app)", "granular:label(a%2Fb)", "granular:label(*)", "gran*", "*", ""}
	someAPIGroups  = []string{"", "apps", "Apps", "example.com", "*", "*.com"}
	someResources  = []string{"deployments", "Deployments", "deployments/status", "deployments/scale", "deployments/*", "pods", "pods/log", "*", "*/status", "*/scale", "*/*", "*/", "", "/status"}
	someNames      = []string{"web", "Web", "wéb", "web/1", "*", ""}
	somePatterns   = []string{"/healthz", "/logs/*", "/logs*", "/a*b", "/a**", "*", "**", "/", "/*", "", "/é/*"}
	somePaths      = []string{"/healthz", "/Healthz", "/healthz/etcd", "/logs", "/logs/", "/logs/kubelet.log", "/logsx", "/a*b", "/axb", "/a", "/a*", "*", "/", "", "/é/x"}
	bindableGroups = slices.DeleteFunc(slices.Clone(someGroups), func(g string) bool { return g == "" })
)

// source makes grants and questions. The same seed gives the same ones.
type source struct{ *rand.Rand }

func newSource(seed uint64) source { return source{rand.New(rand.NewPCG(seed, 0))} }

func (s source) of(pool []string) string { return pool[s.IntN(len(pool))] }

// some returns between one and most items of the pool.
func (s source) some(pool []string, most int) []string {
	out := make([]string, 1+s.IntN(most))
	for i := range out {
		out[i] = s.of(pool)
	}
	return out
}

// grants returns objects whose names contain the tag, so that they differ from objects with another tag. Some bindings refer to
// known roles, or to roles that do not exist.
func (s source) grants(tag string, size int, known Grants) Grants {
	var g Grants
	for i := range size {
		g.ClusterRoles = append(g.ClusterRoles, rbacv1.ClusterRole{ObjectMeta: s.meta(tag, i, ""), Rules: s.rules(true)})
		g.Roles = append(g.Roles, rbacv1.Role{ObjectMeta: s.meta(tag, i, s.of(someNamespaces)), Rules: s.rules(false)})
	}
	known.Append(g)
	for i := range size {
		g.ClusterRoleBindings = append(g.ClusterRoleBindings, rbacv1.ClusterRoleBinding{
			ObjectMeta: s.meta(tag, i, ""), RoleRef: s.role("ClusterRole", known), Subjects: s.subjects(true),
		})
		g.RoleBindings = append(g.RoleBindings, rbacv1.RoleBinding{
			ObjectMeta: s.meta(tag, i, s.of(someNamespaces)), RoleRef: s.role([]string{"Role", "ClusterRole"}[s.IntN(2)], known), Subjects: s.subjects(false),
		})
	}
	return g
}

func (s source) meta(tag string, i int, namespace string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: fmt.Sprintf("%s %s %d", s.of(someRoles), tag, i), Namespace: namespace}
}

func (s source) role(kind string, known Grants) rbacv1.RoleRef {
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind}
	switch {
	case s.IntN(8) == 0:
		ref.Name = fmt.Sprintf("gone %d", s.IntN(4))
	case kind == "Role":
		// The role may be in any namespace, so it is often missing in the namespace of the binding.
		ref.Name = known.Roles[s.IntN(len(known.Roles))].Name
	default:
		ref.Name = known.ClusterRoles[s.IntN(len(known.ClusterRoles))].Name
	}
	return ref
}

func (s source) subjects(cluster bool) []rbacv1.Subject {
	out := make([]rbacv1.Subject, s.IntN(4))
	for i := range out {
		switch s.IntN(3) {
		case 0:
			out[i] = rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: s.of(someUsers)}
		case 1:
			out[i] = rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: s.of(bindableGroups)}
		default:
			out[i] = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: s.of(someAccounts), Namespace: s.of(someNamespaces)}
			if !cluster && s.IntN(2) == 0 {
				out[i].Namespace = ""
			}
		}
	}
	return out
}

func (s source) rules(cluster bool) []rbacv1.PolicyRule {
	out := make([]rbacv1.PolicyRule, s.IntN(4))
	for i := range out {
		out[i].Verbs = s.some(someVerbs, 3)
		if cluster && s.IntN(4) == 0 {
			out[i].NonResourceURLs = s.some(somePatterns, 2)
			continue
		}
		out[i].APIGroups, out[i].Resources = s.some(someAPIGroups, 2), s.some(someResources, 3)
		if s.IntN(3) == 0 {
			out[i].ResourceNames = s.some(someNames, 2)
		}
	}
	return out
}

// question returns a request about the grants: one that a grant allows, one that differs slightly, or any request.
func (s source) question(g Grants) authorizer.AttributesRecord {
	q := s.about(g)
	if !q.ResourceRequest {
		// A review about a path has no other fields.
		return authorizer.AttributesRecord{User: q.User, Verb: q.Verb, Path: q.Path}
	}
	q.Path = ""
	return q
}

func (s source) about(g Grants) authorizer.AttributesRecord {
	q := s.anything()
	if s.IntN(4) == 0 || len(g.ClusterRoleBindings)+len(g.RoleBindings) == 0 {
		return q
	}
	b := s.binding(g)
	if len(b.subjects) > 0 {
		q.User = s.member(b.subjects[s.IntN(len(b.subjects))], b.namespace)
	}
	if b.namespace != "" {
		q.Namespace = b.namespace
	}
	if rules := rulesOf(g, b); len(rules) > 0 {
		s.within(&q, rules[s.IntN(len(rules))])
	}
	if s.IntN(2) == 0 {
		s.miss(&q)
	}
	return q
}

func (s source) binding(g Grants) binding {
	if i := s.IntN(len(g.ClusterRoleBindings) + len(g.RoleBindings)); i < len(g.ClusterRoleBindings) {
		return bindingOf(&g.ClusterRoleBindings[i])
	}
	return bindingOf(&g.RoleBindings[s.IntN(len(g.RoleBindings))])
}

func (s source) anything() authorizer.AttributesRecord {
	q := authorizer.AttributesRecord{User: s.anyUser(), Verb: s.of(someVerbs), ResourceRequest: s.IntN(5) > 0}
	if !q.ResourceRequest {
		q.Path = s.of(somePaths)
		return q
	}
	q.APIGroup, q.Name = s.of(someAPIGroups), s.of(someNames)
	q.Resource, q.Subresource, _ = strings.Cut(s.of(someResources), "/")
	if s.IntN(3) > 0 {
		q.Namespace = s.of(append([]string{"Shop", "none", "shop\x00", "*"}, someNamespaces...))
	}
	return q
}

func (s source) anyUser() user.Info {
	u := &user.DefaultInfo{Name: s.of(append([]string{"", "nobody"}, someUsers...))}
	for range s.IntN(4) {
		u.Groups = append(u.Groups, s.of(append([]string{"", "system:masters"}, someGroups...)))
	}
	if u.Name == "" {
		u.Groups = append(u.Groups, s.of(someGroups)) // an API server accepts no review without a user or group
	}
	return u
}

// member returns a user to which the subject applies.
func (s source) member(subject rbacv1.Subject, namespace string) user.Info {
	switch subject.Kind {
	case rbacv1.GroupKind:
		return &user.DefaultInfo{Name: s.of(someUsers), Groups: []string{s.of(someGroups), subject.Name}}
	case rbacv1.ServiceAccountKind:
		home := accountNamespace(&subject, namespace)
		return &user.DefaultInfo{Name: serviceaccount.MakeUsername(home, subject.Name), Groups: serviceaccount.MakeGroupNames(home)}
	}
	return &user.DefaultInfo{Name: subject.Name}
}

// within changes the question to one that the rule allows.
func (s source) within(q *authorizer.AttributesRecord, rule rbacv1.PolicyRule) {
	or := func(holds string, pool []string) string {
		if holds == "*" {
			return s.of(pool)
		}
		return holds
	}
	q.Verb = or(s.of(rule.Verbs), someVerbs)
	if len(rule.NonResourceURLs) > 0 {
		path := s.of(rule.NonResourceURLs)
		if prefix, ok := strings.CutSuffix(path, "*"); ok {
			path = prefix + s.of([]string{"", "x", "x/y"})
		}
		q.ResourceRequest, q.Path, q.Namespace = false, path, ""
		return
	}
	q.ResourceRequest = true
	q.APIGroup = or(s.of(rule.APIGroups), someAPIGroups)
	q.Resource, q.Subresource, _ = strings.Cut(or(s.of(rule.Resources), someResources), "/")
	q.Resource = or(q.Resource, []string{"deployments", "pods", "*"})
	if len(rule.ResourceNames) > 0 {
		q.Name = s.of(rule.ResourceNames)
	}
}

// miss changes one field.
func (s source) miss(q *authorizer.AttributesRecord) {
	other := s.anything()
	switch s.IntN(7) {
	case 0:
		q.Verb = other.Verb
	case 1:
		q.APIGroup = other.APIGroup
	case 2:
		q.Resource = other.Resource
	case 3:
		q.Subresource = other.Subresource
	case 4:
		q.Name = other.Name
	case 5:
		q.Namespace = other.Namespace
	default:
		q.User = other.User
	}
}
