package plugin

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/client-go/kubernetes"

	"github.com/fieldperm/fieldperm/internal/rbac"
	"github.com/fieldperm/fieldperm/internal/refusal"
	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// whyAnswer is the answer about one refusal. Its JSON is a contract.
type whyAnswer struct {
	refusal.Refusal
	Causes []refusal.Cause `json:"causes"`
	// Grant is the least one that would lift the refusal, or nil, and NoGrant why there is none.
	Grant   *refusal.Grant `json:"grant,omitempty"`
	NoGrant string         `json:"noGrant,omitempty"`
	// Notes say what to mind.
	Notes []string `json:"notes,omitempty"`
	// Grantors may change the roles or bindings of the grant; with --who only.
	Grantors []refusal.Grantor `json:"grantors,omitempty"`
}

// answer draws the answer from the refusal and the flags.
func (o *asking) answer(r *refusal.Refusal) whyAnswer {
	out := whyAnswer{Refusal: *r, Causes: r.Causes()}
	namespace, note := o.namespaceOf(r)
	if out.Grant, out.NoGrant = r.Grant(namespace); out.Grant == nil {
		return out
	}
	if note != "" {
		out.Notes = append(out.Notes, note)
	}
	if r.MoreChanges > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("Changes that were not looked at: %d. They may need more verbs. kubectl fieldperm review lists all", r.MoreChanges))
	}
	if r.Origin == refusal.FromAuthorization && r.IsWrite() && !r.LacksGet {
		out.Notes = append(out.Notes, "The grant allows every field without a barrier. To allow single fields, grant granular and the verbs of the fields: kubectl fieldperm explain shows them")
	}
	if len(r.Unmet) > 0 {
		out.Notes = append(out.Notes, "The grant also allows the verb where the condition is not met")
	}
	return out
}

// namespaceOf returns the namespace of the grant, "" for the cluster, and a note if the text does not say it.
func (o *asking) namespaceOf(r *refusal.Refusal) (namespace, note string) {
	if r.Namespaced != nil {
		return r.Namespace, ""
	}
	resource, _, _ := strings.Cut(r.Resource, "/")
	if resource, group, _ := strings.Cut(resource, "."); endpoint.ClusterScoped(group, resource) {
		return "", ""
	}
	namespace, given, err := o.cluster.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		namespace = "default"
	}
	if given {
		return namespace, ""
	}
	return namespace, fmt.Sprintf("The message does not name the namespace, and %q is that of the kubeconfig: give -n. For an object outside of namespaces make it a ClusterRole and a ClusterRoleBinding", namespace)
}

// addGrantors adds the users and groups that could make each grant. It reports whether RBAC could be read.
func (o *asking) addGrantors(ctx context.Context, answers []whyAnswer) bool {
	grants, err := o.readRBAC(ctx)
	if err != nil {
		o.warn("the answer lacks who could grant it: %v: allow list on roles, clusterroles, rolebindings and clusterrolebindings.rbac.authorization.k8s.io", err)
		return false
	}
	for i := range answers {
		if answers[i].Grant != nil {
			namespace, _ := o.namespaceOf(&answers[i].Refusal)
			answers[i].Grantors = refusal.Grantors(grants, namespace)
		}
	}
	return true
}

func (o *asking) readRBAC(ctx context.Context) (*rbac.Grants, error) {
	config, err := o.config()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return rbac.List(ctx, client)
}
