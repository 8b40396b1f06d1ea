//go:build integration

package patch

import (
	"fmt"
	"net/http"
	"strings"
)

// The control planes. Webhook configurations and policies are objects of a whole cluster, so each kind of installation has its own.
const (
	// plain is without fieldperm.
	plain = "plain"
	// asking is fieldperm as installed by default: it asks kube-apiserver about verbs.
	asking = "asking"
	// inProcess has RBAC in process, and a PermissionObservation.
	inProcess = "in process"
	// barred has barriers on Deployments.
	barred = "barred"
)

// variant is one way of a PATCH. Its name is also that of its user and of its namespace.
type variant struct {
	name, plane string
	// verbs are what the user holds on the Deployments of the namespace.
	verbs []string
	// image is the answer to a PATCH of the image.
	image int
	// cold means that no cache knows the object: each PATCH is of another Deployment, and of the same one only when all answers about it
	// are too old.
	cold bool
	// causes are the requests that a PATCH of the replicas causes. Answers about an object are cached if it is not cold.
	causes requests
}

// requests are requests between kube-apiserver and fieldperm.
type requests struct {
	// authorize, granular, uncovered and observed are those of kube-apiserver to fieldperm, by endpoint.
	authorize, granular, uncovered, observed float64
	// checks are the SubjectAccessReviews of fieldperm to kube-apiserver.
	checks float64
}

func (r requests) each(n int) requests {
	by := float64(n)
	return requests{r.authorize / by, r.granular / by, r.uncovered / by, r.observed / by, r.checks / by}
}

func (r requests) String() string {
	return fmt.Sprintf("%.4g authorize, %.4g granular, %.4g uncovered, %.4g observed, %.4g checks", r.authorize, r.granular, r.uncovered, r.observed, r.checks)
}

// variants lists all variants, those without fieldperm first.
func variants() []*variant {
	generic := []string{"get", "update", "patch"}
	granular := []string{"get", "granular", "granular:scale"}
	return []*variant{
		{name: none, plane: plain, verbs: generic, image: http.StatusOK},
		{name: "policy", plane: plain, verbs: generic, image: http.StatusUnprocessableEntity},
		{name: noop, plane: plain, verbs: generic, image: http.StatusForbidden},
		{name: "generic", plane: asking, verbs: generic, image: http.StatusOK},
		{name: "granular", plane: asking, verbs: granular, image: http.StatusForbidden, causes: requests{granular: 1}},
		{
			name: "granular-cold", plane: asking, verbs: granular, image: http.StatusForbidden, cold: true,
			causes: requests{authorize: 1, granular: 1, checks: 7},
		},
		{name: "in-process", plane: inProcess, verbs: granular, image: http.StatusForbidden, causes: requests{granular: 1}},
		{
			name: "in-process-cold", plane: inProcess, verbs: granular, image: http.StatusForbidden, cold: true,
			causes: requests{authorize: 1, granular: 1},
		},
		{name: observed, plane: inProcess, verbs: generic, image: http.StatusOK, causes: requests{observed: 1}},
		{name: "barrier", plane: barred, verbs: generic, image: http.StatusForbidden, causes: requests{uncovered: 1}},
		{
			name: rootBarred, plane: barred, verbs: append(generic, "granular:scale"), image: http.StatusForbidden,
			causes: requests{uncovered: 1},
		},
	}
}

// These variants are named in objects of their control planes, or compared with.
const none, noop, observed, rootBarred = "none", "noop", "observed", "root"

// role is the namespace of a variant, and what its user holds there.
func (v *variant) role() string {
	var quoted []string
	for _, verb := range v.verbs {
		quoted = append(quoted, fmt.Sprintf("%q", verb))
	}
	return fmt.Sprintf(`---
{apiVersion: v1, kind: Namespace, metadata: {name: %[1]s}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: writer, namespace: %[1]s}
rules:
- {apiGroups: [apps], resources: [deployments], verbs: [%[2]s]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: writer, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: writer}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %[1]s}]
`, v.name, strings.Join(quoted, ", "))
}

// deployment is a Deployment of four containers of a variant.
func (v *variant) deployment(number int) string {
	out := fmt.Sprintf(`---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[2]s, namespace: %[1]s, labels: {app: web, team: shop}, annotations: {example.com/owner: shop, example.com/pager: "#shop"}}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web, team: shop}}
    spec:
      serviceAccountName: web
      volumes:
      - {name: config, configMap: {name: web}}
      containers:
`, v.name, deploymentName(number))
	for i, name := range []string{"web", "proxy", "log", "metrics"} {
		out += fmt.Sprintf(`      - name: %[1]s
        image: registry.example.com/%[1]s:v1
        args: ["--listen=:%[2]d", "--config=/etc/web/config.yaml"]
        ports: [{name: %[1]s, containerPort: %[2]d}]
        env: [{name: REGION, value: eu}, {name: LEVEL, value: info}, {name: PASSWORD, valueFrom: {secretKeyRef: {name: web, key: password}}}]
        resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 128Mi}}
        readinessProbe: {httpGet: {path: /readyz, port: %[2]d}, periodSeconds: 10}
        volumeMounts: [{name: config, mountPath: /etc/web}]
`, name, 8080+i)
	}
	return out
}

func deploymentName(number int) string { return fmt.Sprintf("web-%d", number) }
