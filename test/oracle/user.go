package oracle

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// User is a user that sends requests. The grants are all verbs that the user holds. The oracle writes them into one ClusterRole, and judges
// by the grants here, not by the ClusterRole.
type User struct {
	Name string
	// Sort says how the grants were drawn, for the table at the end.
	Sort   string
	grants map[Place]map[string]bool
	// gates give more verbs, or deny writes, under conditions.
	gates []*gate
}

// Holds reports whether a verb was granted.
func (u *User) Holds(p Place, verb string) bool { return u.grants[p][verb] }

func (u *User) grant(p Place, verbs ...string) {
	if u.grants[p] == nil {
		u.grants[p] = map[string]bool{}
	}
	for _, v := range verbs {
		u.grants[p][v] = true
	}
}

// Grants lists the verbs that the user holds on a place, sorted.
func (u *User) Grants(p Place) []string { return slices.Sorted(maps.Keys(u.grants[p])) }

// sorts are the sorts of users. Each user is drawn anew for every epoch under a new name, so that no cached decision for an earlier user
// applies to a later one.
var sorts = []struct {
	name  string
	count int
	draw  func(d *draw, u *User, p Place, vocabulary *vocabulary)
}{
	{"nothing", 1, func(*draw, *User, Place, *vocabulary) {}},
	{"marker alone", 4, func(_ *draw, u *User, p Place, _ *vocabulary) { u.grant(p, verbs.Marker) }},
	{"verbs without the marker", 1, func(d *draw, u *User, p Place, vocabulary *vocabulary) { u.grant(p, vocabulary.some(d, 3)...) }},
	{"marker and one verb", 5, func(d *draw, u *User, p Place, vocabulary *vocabulary) {
		u.grant(p, append(vocabulary.some(d, 1), verbs.Marker)...)
	}},
	{"marker and verbs", 7, func(d *draw, u *User, p Place, vocabulary *vocabulary) {
		u.grant(p, append(vocabulary.some(d, 2+d.IntN(6)), verbs.Marker)...)
		if d.oneIn(2) {
			u.grant(p, verbs.Creation().String())
		}
	}},
	{"marker and all", 1, func(_ *draw, u *User, p Place, _ *vocabulary) { u.grant(p, verbs.Marker, "granular:*") }},
	{"generic", 3, func(_ *draw, u *User, p Place, _ *vocabulary) { u.grant(p, "create", "update", "patch") }},
	{"generic and verbs", 3, func(d *draw, u *User, p Place, vocabulary *vocabulary) {
		u.grant(p, append(vocabulary.some(d, 3), pick(d, []string{"create", "update", "patch"}), pick(d, []string{"create", "update", "patch"}))...)
	}},
}

// drawUsers draws the users of an epoch. The vocabulary of a place has the verbs that it can have.
func drawUsers(d *draw, epoch string, places []Place, vocabulary map[Place]*vocabulary) []*User {
	var out []*User
	for _, sort := range sorts {
		for range sort.count {
			u := &User{Name: fmt.Sprintf("u%s-%d", epoch, len(out)), Sort: sort.name, grants: map[Place]map[string]bool{}}
			for _, p := range places {
				sort.draw(d, u, p, vocabulary[p])
			}
			out = append(out, u)
		}
	}
	return out
}

// publish writes the grants of a user to the cluster.
func (u *User) publish(ctx context.Context, client kubernetes.Interface) error {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "oracle:" + u.Name}}
	// Many places have the same verbs and share one rule.
	same := map[string]*rbacv1.PolicyRule{}
	for _, p := range slices.SortedFunc(maps.Keys(u.grants), func(a, b Place) int { return strings.Compare(a.String(), b.String()) }) {
		held := u.Grants(p)
		key := p.Group + "\x00" + strings.Join(held, "\x00")
		if rule := same[key]; rule != nil {
			rule.Resources = append(rule.Resources, p.Name())
		} else if len(held) > 0 {
			rule = &rbacv1.PolicyRule{APIGroups: []string{p.Group}, Resources: []string{p.Name()}, Verbs: held}
			if slices.Contains(held, verbs.Marker) {
				// Without get nobody is let in to update or patch (A7). Nothing is judged about that.
				rule.Verbs = append(slices.Clone(held), "get")
			}
			same[key] = rule
		}
	}
	for _, key := range slices.Sorted(maps.Keys(same)) {
		role.Rules = append(role.Rules, *same[key])
	}
	if _, err := client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("user %q: %w", u.Name, err)
	}
	_, err := client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: role.ObjectMeta,
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: u.Name}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("user %q: %w", u.Name, err)
	}
	return nil
}

// parameters are drawn for verbs with a parameter. They are values that occur in the objects of this package.
var parameters = []string{
	"web", "side", "init", "example.com", "tier", "app", "note", "kubernetes.io", "kubectl.kubernetes.io", "pod-security.kubernetes.io",
	"Ready", "Available", "Progressing", "Approved", "Denied", "Complete", "Failed", "a", "b", "cpu", "data", "deployment.kubernetes.io",
}

// keyed matches the verbs of keys of labels and annotations.
var keyed = regexp.MustCompile("(?i)label|annotation|finalizer")

// vocabulary has the verbs of a place by their names, so that a verb with many parameters is not drawn more often.
type vocabulary struct {
	names []string
	verbs map[string][]string
}

// newVocabulary takes sorted verbs.
func newVocabulary(verbs []string) *vocabulary {
	v := &vocabulary{verbs: map[string][]string{}}
	for _, verb := range verbs {
		name, _, _ := strings.Cut(verb, "(")
		if v.verbs[name] == nil {
			v.names = append(v.names, name)
		}
		v.verbs[name] = append(v.verbs[name], verb)
	}
	slices.Sort(v.names)
	return v
}

// some draws up to n verbs.
func (v *vocabulary) some(d *draw, n int) []string {
	var out []string
	for range n {
		if v != nil && len(v.names) > 0 {
			out = append(out, pick(d, v.verbs[pick(d, v.names)]))
		}
	}
	return out
}

// vocabularies lists for each place the verbs of its kinds, with parameters if they take one.
func vocabularies(w *world) map[Place]*vocabulary {
	kinds := map[Place]map[string]bool{}
	for _, e := range w.endpoints {
		if kinds[e.Place] == nil {
			kinds[e.Place] = map[string]bool{}
		}
		for _, v := range w.verbsOf(e) {
			kinds[e.Place][v] = true
		}
	}
	out := map[Place]*vocabulary{}
	for p, set := range kinds {
		for v := range w.learned[p.Main()] {
			set[v] = true
		}
		out[p] = newVocabulary(slices.Sorted(maps.Keys(set)))
	}
	return out
}

// verbsOf lists the verbs of the kind that an endpoint accepts, and the verbs of its main resource.
func (w *world) verbsOf(e *Endpoint) []string {
	var out []string
	for _, kind := range w.kindsOf(e) {
		out = append(out, w.verbsOfKind(kind)...)
	}
	return out
}

// verbsOfKind lists the verbs of a kind, sorted.
func (w *world) verbsOfKind(kind runtimeschema.GroupVersionKind) []string {
	seen := map[string]bool{}
	w.stored.Walk(kind, func(_ fieldpath.Pattern, n *schema.Node) {
		for _, p := range n.Permissions() {
			if p.ParameterName() == "" {
				seen[p.Base().String()] = true
				continue
			}
			for _, parameter := range parameters {
				if isKey := keyed.MatchString(p.Base().Name()); isKey && parameter[0] < 'a' {
					continue // No key has this prefix.
				}
				if v, ok := p.Base().WithParameter(parameter); ok {
					seen[v.String()] = true
				}
			}
		}
	})
	return slices.Sorted(maps.Keys(seen))
}

// draw is the only source of randomness: a seed repeats everything except the order of concurrent work.
type draw struct{ *rand.Rand }

func newDraw(seed, stream uint64) *draw { return &draw{rand.New(rand.NewPCG(seed, stream))} }

func (d *draw) oneIn(n int) bool { return d.IntN(n) == 0 }

func pick[T any](d *draw, from []T) T { return from[d.IntN(len(from))] }

// some draws up to n of a list.
func (d *draw) some(from []string, n int) []string {
	var out []string
	for range n {
		if len(from) > 0 {
			out = append(out, pick(d, from))
		}
	}
	return out
}
