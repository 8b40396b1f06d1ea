//go:build controllers

package controllers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Changes that no controller makes. The first that the API server would store is tried: a status keeps no labels in some kinds.
var foreign = []string{
	`{"metadata":{"labels":{"outside.example.com/x":"1"}}}`,
	`{"metadata":{"annotations":{"outside.example.com/x":"1"}}}`,
	`{"metadata":{"finalizers":["outside.example.com/x"]}}`,
	`{"status":{"conditions":[{"type":"outside.example.com/x","status":"True","reason":"X","message":"x","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`,
	`{"status":{"used":{"pods":"77"}}}`,
	`{"spec":{"replicas":77}}`,
	`{"ports":[{"name":"outside","port":77,"protocol":"TCP"}]}`,
}

// groupsOf returns the groups of a controller's user.
func groupsOf(user string) []string {
	if user == scheduler {
		return nil
	}
	return []string{"system:serviceaccounts", controllersGroup}
}

// holds asks RBAC whether a user has a generic permission. What fieldperm lets in by the marker is none.
func (w *world) holds(ctx context.Context, user, verb string, at resource) (allowed bool, why string) {
	name, sub, _ := strings.Cut(at.name, "/")
	review, err := w.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user, Groups: append(groupsOf(user), "system:authenticated"),
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: at.group, Version: "*", Resource: name, Subresource: sub},
	}}, metav1.CreateOptions{})
	must(w.t, err)
	return review.Status.Allowed && !strings.HasPrefix(review.Status.Reason, marker+":"), review.Status.Reason
}

// writeOutside sends, as each controller that updated something, one write of a field that it does not write. It returns the answers, and fails
// the test for a controller whose write is not refused by fieldperm.
func (r *run) writeOutside(roles []*role, e evidence) map[string]string {
	r.t.Helper()
	out := map[string]string{}
	for _, held := range roles {
		for _, user := range held.users {
			if len(e[user]) > 0 && out[user] == "" {
				out[user] = r.outside(user, e)
				if out[user] == "" {
					r.t.Errorf("%s: no write outside its fields was refused", user)
				}
			}
		}
	}
	return out
}

func (r *run) outside(user string, e evidence) string {
	r.t.Helper()
	identity, err := r.stack.User(user, groupsOf(user)...)
	must(r.t, err)
	// The main resources first, and Events last.
	resources := slices.SortedFunc(maps.Keys(e[user]), func(a, b resource) int {
		rank := func(r resource) string {
			return fmt.Sprint(r.name == "events", strings.Contains(r.name, "/"), r.group, r.name)
		}
		return strings.Compare(rank(a), rank(b))
	})
	for _, at := range resources {
		name, sub, _ := strings.Cut(at.name, "/")
		full := name
		if at.group != "" {
			full += "." + at.group
		}
		all, err := r.world.at(nil, full, "")
		must(r.t, err)
		list, err := all.List(r.t.Context(), metav1.ListOptions{Limit: 500})
		must(r.t, err)
		if len(list.Items) == 0 {
			continue
		}
		// An object of the scenario, if there is one.
		object := list.Items[0]
		for _, o := range list.Items {
			if o.GetNamespace() == "shop" {
				object = o
				break
			}
		}
		client, err := r.world.at(identity.Config, full, object.GetNamespace())
		must(r.t, err)
		for _, change := range foreign {
			var subresources []string
			if sub != "" {
				subresources = []string{sub}
			}
			_, err := client.Patch(r.t.Context(), object.GetName(), types.MergePatchType, []byte(change), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, subresources...)
			if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "may not change") {
				return fmt.Sprintf("%s: %s", at, err)
			}
		}
	}
	return ""
}

// printTable prints a row for each controller that updated something.
func printTable(t *testing.T, e evidence, roles []*role, refused map[string][]string, outside map[string]string) {
	t.Helper()
	granular := map[string]int{}
	for _, r := range roles {
		for _, user := range r.users {
			for _, verbs := range r.granular {
				granular[user] += len(verbs)
			}
		}
	}
	text := &strings.Builder{}
	table := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CONTROLLER\tUPDATES\tRESOURCES\tVERBS USED\tVERBS GRANTED\tREFUSED\tOUTSIDE ITS FIELDS")
	controllers, writes, total := 0, 0, 0
	for _, user := range slices.Sorted(maps.Keys(e)) {
		n, used := 0, 0
		for _, u := range e[user] {
			n += u.writes
			used += len(u.verbs)
		}
		answer := "refused"
		if granular[user] == 0 {
			answer = "keeps update"
		} else if outside[user] == "" {
			answer = "not refused"
		}
		controllers, writes, total = controllers+1, writes+n, total+len(refused[user])
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%s\n", strings.TrimPrefix(user, "system:serviceaccount:kube-system:"), n, len(e[user]), used, granular[user], len(refused[user]), answer)
	}
	fmt.Fprintf(table, "%d controllers\t%d\t\t\t\t%d\t\n", controllers, writes, total)
	must(t, table.Flush())
	t.Logf("with granular verbs only:\n%s", text)
	for _, user := range slices.Sorted(maps.Keys(outside)) {
		t.Logf("%s: %s", user, outside[user])
	}
}
