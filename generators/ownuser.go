package generators

import (
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/verbs"

	"github.com/fieldperm/fieldperm/generators/webhooks"
)

const rbacComment = `# What fieldperm's own user may do, and what for. Discovery and OpenAPI are allowed to every authenticated user
# (system:discovery). In the cluster:
#   subjectaccessreviews          ask what others may do.
#   customresourcedefinitions,    read what kinds there are, and which of them other servers serve.
#   apiservices
#   permissionschemas,            read the administrator's schemas and policies, and say in their status whether they
#   uncoveredpermissionsets,      compiled and are enforced.
#   conditionalpolicies
#   permissionobservations        say in their status which verbs the observed updates needed.
#   users, userextras             send the probes: as a user without rights, with a nonce. One name and one key.
#   roles, rolebindings,          answer for RBAC in process: for an --authorization-config with an authorizer of type RBAC.
#   clusterroles,                 Without one, drop the rule.
#   clusterrolebindings
`

const (
	rbacKeptComment = `#   validatingwebhookconfigurations  keep fieldperm-uncovered and fieldperm-observed.
`
	rbacRESTComment = `#   validatingwebhookconfigurations  read whether enforcement is proven; keep fieldperm-uncovered and fieldperm-observed; renew the CA bundle of
#                                 fieldperm, and remove its finalizer when it is deleted.
`
)

const rbacStaticComment = `#   /metrics                      read which static manifests kube-apiserver has loaded, by their hash.
`

const rbacDefaultComment = `# In the namespace default:
#   endpointslices                find every API server: they register themselves in the one named kubernetes.
#   events                        say when and why nothing is allowed any more; granular:* so that a set for every resource
#                                 does not stop that. Without the marker it gives nothing else.
# In the namespace kube-system, of the user of probes:
#   podtemplates                  ask by a dry run which rules an API server has loaded.
`

// readVerbs returns the verbs of an informer, and more.
func readVerbs(more ...string) []string { return append([]string{"get", "list", "watch"}, more...) }

func rbac(o Options) (string, string, []any, error) {
	meta := metav1.ObjectMeta{Name: "fieldperm"}
	inDefault := metav1.ObjectMeta{Name: "fieldperm", Namespace: metav1.NamespaceDefault}
	inSystem := metav1.ObjectMeta{Name: "fieldperm-probe", Namespace: metav1.NamespaceSystem}
	comment := rbacComment + rbacKeptComment
	if o.REST {
		comment = rbacComment + rbacRESTComment
	} else {
		comment += rbacStaticComment
	}
	typeMeta := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
	}
	ref := func(kind string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: meta.Name}
	}
	subjects := []rbacv1.Subject{o.subject()}
	migrator, migratorBinding, err := migratorRole()
	if err != nil {
		return fileRBAC, "", nil, err
	}
	views, viewsBinding := viewerRole()
	return fileRBAC, comment + rbacDefaultComment + rbacMigratorComment + rbacViewerComment, []any{
		&rbacv1.ClusterRole{TypeMeta: typeMeta("ClusterRole"), ObjectMeta: meta, Rules: o.clusterRules()},
		&rbacv1.ClusterRoleBinding{TypeMeta: typeMeta("ClusterRoleBinding"), ObjectMeta: meta, RoleRef: ref("ClusterRole"), Subjects: subjects},
		&rbacv1.Role{TypeMeta: typeMeta("Role"), ObjectMeta: inDefault, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, ResourceNames: []string{webhooks.APIServersSlice}, Verbs: readVerbs()},
			{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch", verbs.All().String()}},
		}},
		&rbacv1.RoleBinding{TypeMeta: typeMeta("RoleBinding"), ObjectMeta: inDefault, RoleRef: ref("Role"), Subjects: subjects},
		&rbacv1.Role{TypeMeta: typeMeta("Role"), ObjectMeta: inSystem, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"podtemplates"}, Verbs: []string{"create"}},
		}},
		&rbacv1.RoleBinding{TypeMeta: typeMeta("RoleBinding"), ObjectMeta: inSystem, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: inSystem.Name}, Subjects: []rbacv1.Subject{
			{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: admission.ProbeUser},
		}},
		migrator, migratorBinding, views, viewsBinding,
	}, nil
}

// ownResources returns the resources of fieldperm's own kinds, or a subresource of each.
func ownResources(subresource string) []string {
	return []string{
		v1alpha1.PermissionSchemaResource + subresource, v1alpha1.UncoveredPermissionSetResource + subresource,
		v1alpha1.ConditionalPolicyResource + subresource, v1alpha1.PermissionObservationResource + subresource,
	}
}

func (o Options) clusterRules() []rbacv1.PolicyRule {
	own := v1alpha1.GroupVersion.Group
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}},
		{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: readVerbs()},
		{APIGroups: []string{"apiregistration.k8s.io"}, Resources: []string{"apiservices"}, Verbs: readVerbs()},
		{APIGroups: []string{own}, Resources: ownResources(""), Verbs: readVerbs()},
		{APIGroups: []string{own}, Resources: ownResources("/status"), Verbs: []string{"patch"}},
		{APIGroups: []string{""}, Resources: []string{"users"}, ResourceNames: []string{admission.ProbeUser}, Verbs: []string{"impersonate"}},
		// The resource names of this rule would be the nonces, which change.
		{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"userextras/" + admission.ProbeKey}, Verbs: []string{"impersonate"}},
		// This rule is always there, although few installations need it: it depends on the authorizer chain, which is in a file of
		// fieldperm that the generator does not read.
		{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"}, Verbs: []string{"list", "watch"}},
	}
	if !o.REST {
		rules = append(rules, rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}})
	}
	configurations := func(verbs []string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"validatingwebhookconfigurations"}, ResourceNames: names, Verbs: verbs}
	}
	rules = append(rules, configurations(readVerbs()))
	if o.REST {
		rules = append(rules, configurations([]string{"update", "patch"}, webhooks.RESTName))
	}
	kept := []string{"update", "patch"}
	if o.REST {
		// fieldperm deletes RESTName when it releases it.
		kept = append(kept, "delete")
	}
	if len(o.Uncovered) == 0 {
		// Server-side apply creates an object under a known name, so even create can be limited to one name.
		kept = append([]string{"create"}, kept...)
	}
	rules = append(rules, configurations(kept, webhooks.UncoveredName))
	return append(rules, configurations([]string{"create", "update", "patch"}, webhooks.ObservedName))
}

// subject returns fieldperm's own user as a subject.
func (o Options) subject() rbacv1.Subject {
	if namespace, name, ok := serviceAccount(o.User); ok {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
	}
	return rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: o.User}
}

const flowSchemaComment = `# A request that waits for fieldperm keeps its seat of API priority and fairness. If what fieldperm asks
# meanwhile had to queue for a seat too, the seats could run out and each wait for the other. Its probes
# must not queue either, or a busy API server looks like one that does not enforce. What the user can do at
# all is bounded by rbac.yaml, and the user of the probes may create PodTemplates in kube-system.
`

func flowSchema(o Options) (string, string, []any, error) {
	subject := flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: o.User}}
	if namespace, name, ok := serviceAccount(o.User); ok {
		subject = flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindServiceAccount, ServiceAccount: &flowcontrolv1.ServiceAccountSubject{Namespace: namespace, Name: name}}
	}
	probe := flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: admission.ProbeUser}}
	return fileFlowSchema, flowSchemaComment, []any{&flowcontrolv1.FlowSchema{
		TypeMeta:   metav1.TypeMeta{APIVersion: flowcontrolv1.SchemeGroupVersion.String(), Kind: "FlowSchema"},
		ObjectMeta: metav1.ObjectMeta{Name: "fieldperm"},
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: flowcontrolv1.PriorityLevelConfigurationNameExempt},
			// This precedes every flow schema of Kubernetes except exempt (1) and probes (2).
			MatchingPrecedence: 10,
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects: []flowcontrolv1.Subject{subject, probe},
				ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
					Verbs: []string{flowcontrolv1.VerbAll}, APIGroups: []string{flowcontrolv1.APIGroupAll}, Resources: []string{flowcontrolv1.ResourceAll},
					ClusterScope: true, Namespaces: []string{flowcontrolv1.NamespaceEvery},
				}},
				NonResourceRules: []flowcontrolv1.NonResourcePolicyRule{{Verbs: []string{flowcontrolv1.VerbAll}, NonResourceURLs: []string{flowcontrolv1.NonResourceAll}}},
			}},
		},
	}}, nil
}

// serviceAccount splits the user name of a service account. ok is false for any other user name.
func serviceAccount(user string) (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(user, "system:serviceaccount:")
	if !ok {
		return "", "", false
	}
	namespace, name, ok = strings.Cut(rest, ":")
	return namespace, name, ok && namespace != "" && name != "" && !strings.Contains(name, ":")
}
