package plugin

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/fieldperm/fieldperm/internal/audit"
	"github.com/fieldperm/fieldperm/internal/sources"
)

// scanned returns a scan of two users with the marker.
func scanned(t *testing.T) *audit.Scan {
	t.Helper()
	documents, compiled, _, err := sources.TracedFiles(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &audit.Scan{Known: audit.NewKnown(compiled, &documents), Many: audit.DefaultMany, Report: func(audit.Finding) {}}
	nothing := func(context.Context, func(*audit.Binding) error) error { return nil }
	role := &audit.Role{Ref: audit.Ref{Kind: "ClusterRole", Name: "a"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "granular", "granular:labels"}}}}
	binding := &audit.Binding{Ref: audit.Ref{Kind: "ClusterRoleBinding", Name: "a"}, Role: role.Ref, Subjects: []rbacv1.Subject{{Kind: "User", Name: "jane"}, {Kind: "User", Name: "joe"}}}
	_, err = s.Run(t.Context(), audit.Source{
		ClusterRoles: func(_ context.Context, visit func(*audit.Role) error) error { return visit(role) }, Roles: func(context.Context, func(*audit.Role) error) error { return nil },
		ClusterRoleBindings: func(_ context.Context, visit func(*audit.Binding) error) error { return visit(binding) }, RoleBindings: nothing,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// kube-apiserver's answers about holders of the marker: one allowance because of the marker proves enforcement. An allowance of another
// authorizer proves nothing, and refutes nothing.
func TestAuditProof(t *testing.T) {
	allowed := func(reason string) authorizationv1.SubjectAccessReviewStatus {
		return authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: reason}
	}
	const ours = `granular: the user holds "granular"; admission decides on each field`
	refused := authorizationv1.SubjectAccessReviewStatus{}
	for name, c := range map[string]struct {
		answers []authorizationv1.SubjectAccessReviewStatus
		fault   error
		found   int
		users   []string
	}{
		"proven":                     {answers: []authorizationv1.SubjectAccessReviewStatus{allowed(ours)}, users: []string{"jane"}},
		"refused, then proven":       {answers: []authorizationv1.SubjectAccessReviewStatus{refused, allowed(ours)}, users: []string{"jane", "joe"}},
		"refused":                    {answers: []authorizationv1.SubjectAccessReviewStatus{refused, refused}, found: 1, users: []string{"jane", "joe"}},
		"refused, then by another":   {answers: []authorizationv1.SubjectAccessReviewStatus{refused, allowed("RBAC")}, found: 1, users: []string{"jane", "joe"}},
		"allowed by other":           {answers: []authorizationv1.SubjectAccessReviewStatus{allowed("RBAC: x"), allowed("")}, users: []string{"jane", "joe"}},
		"the command may not ask it": {fault: errors.New("forbidden"), users: []string{"jane"}},
	} {
		t.Run(name, func(t *testing.T) {
			var users []string
			client := fake.NewClientset()
			client.PrependReactor("create", "subjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
				review := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
				users = append(users, review.Spec.User)
				if c.fault != nil {
					return true, nil, c.fault
				}
				if r := review.Spec.ResourceAttributes; r.Verb != "update" || r.Group != "apps" || r.Version != "v1" || r.Resource != "deployments" || !slices.Equal(review.Spec.Groups, []string{"system:authenticated"}) {
					t.Errorf("asked %+v", review.Spec)
				}
				review.Status = c.answers[len(users)-1]
				return true, review, nil
			})
			o := &auditing{failOn: "error", inquirer: inquirer{options: options{output: outputJSON}}}
			err := o.proof(t.Context(), client, scanned(t))
			if (err != nil) != (c.fault != nil) || err != nil && !strings.HasSuffix(err.Error(), "allow create on subjectaccessreviews.authorization.k8s.io") {
				t.Error(err)
			}
			if len(o.found) != c.found || !slices.Equal(users, c.users) {
				t.Errorf("found %+v, asked about %q", o.found, users)
			}
		})
	}
}

// Findings are written as they are found, as text.
func TestAuditWritesAtOnce(t *testing.T) {
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	o := &auditing{failOn: "warning", inquirer: inquirer{options: options{streams: streams, cluster: genericclioptions.NewConfigFlags(true), output: outputText}}}
	o.report(audit.Finding{Rule: "r", Level: audit.Note, Object: audit.Ref{Kind: "Role", Namespace: "shop", Name: "a"}, Message: "m", Cure: "c", File: "f.yaml"})
	if got := out.String(); got != "f.yaml: note: Role shop/a: m: c [r]\n" || o.failed || o.counts.Notes != 1 {
		t.Errorf("%q, %+v", got, o.counts)
	}
	o.report(audit.Finding{Rule: "r", Level: audit.Warning, Object: audit.Ref{Kind: "Role", Namespace: "shop", Name: "a"}, Path: "rules[0]", Message: "m", Cure: "c", File: "f.yaml", Line: 3})
	if got := out.String(); !strings.HasSuffix(got, "f.yaml:3: warning: Role shop/a: rules[0]: m: c [r]\n") || !o.failed {
		t.Errorf("%q", got)
	}
}
