package oracle

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// injectAnnotation asks for a container that a policy adds when an object is created. No manager owns this container.
const injectAnnotation = "oracle.test/inject"

const injector = `{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy", "metadata": {"name": "oracle-inject"}, "spec": {
 "failurePolicy": "Fail", "reinvocationPolicy": "Never",
 "matchConstraints": {"resourceRules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments", "statefulsets", "daemonsets", "replicasets"]}]},
 "matchConditions": [{"name": "asked", "expression": "has(object.metadata.annotations) && '` + injectAnnotation + `' in object.metadata.annotations"}],
 "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression":
  "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: [Object.spec.template.spec.containers{name: 'guard', image: 'guard'}]}}}}"}}]}}`

const injectorBinding = `{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": "oracle-inject"}, "spec": {"policyName": "oracle-inject"}}`

// inject installs the policy and waits until it is in force.
func (w *world) inject(ctx context.Context) error {
	const group = "/apis/admissionregistration.k8s.io/v1/"
	for resource, body := range map[string]string{"mutatingadmissionpolicies": injector, "mutatingadmissionpolicybindings": injectorBinding} {
		answer, err := w.sender.admin(ctx, http.MethodPost, group+resource, "application/json", []byte(body))
		if err == nil && !answer.OK() {
			err = fmt.Errorf("%d: %s", answer.Code, answer.Status.Message)
		}
		if err != nil {
			return fmt.Errorf("policy that injects: %w", err)
		}
	}
	probe := []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"probe","annotations":{"` + injectAnnotation + `":"yes"}},"spec":{"selector":{"matchLabels":{"a":"b"}},
"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"web","image":"web"}]}}}}`)
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		answer, err := w.sender.admin(ctx, http.MethodPost, "/apis/apps/v1/namespaces/default/deployments?dryRun=All", "application/json", probe)
		if err != nil {
			return false, err
		}
		object, err := parseObject(answer.Body)
		if err != nil {
			return false, err
		}
		spec := child(child(child(object, "spec"), "template"), "spec")
		containers, _ := spec["containers"].([]any)
		return len(containers) == 2, nil
	})
}
