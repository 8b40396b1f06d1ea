//go:build integration

package e2e

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// patched is a patch, the answer to it, and a part of the object that the API server has stored afterwards.
type patched struct {
	subresource, body string
	code              int
	stored            string
}

// TestRoles_Cluster: the roles that fieldperm-gen writes let their holders make the writes that their comments name, and none beside them. What
// the API server has stored is the judge.
func TestRoles_Cluster(t *testing.T) {
	s := start(t)
	admin := wire(t, s, "admin", "system:masters")
	const namespace = "/api/v1/namespaces/default/"
	const deployment = "/apis/apps/v1/namespaces/default/deployments"
	const strategic = "application/strategic-merge-patch+json"
	for path, body := range map[string]string{
		namespace + "services":   `{"metadata":{"name":"roles"},"spec":{"ports":[{"port":80}]}}`,
		namespace + "configmaps": `{"metadata":{"name":"roles"}}`,
		namespace + "pods":       `{"metadata":{"name":"roles"},"spec":{"automountServiceAccountToken":false,"containers":[{"name":"web","image":"a","resources":{"requests":{"cpu":"100m"}}},{"name":"db","image":"a","resources":{"requests":{"cpu":"100m"}}}]}}`,
		deployment:               `{"metadata":{"name":"roles"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"web","image":"a"},{"name":"db","image":"a"}],"initContainers":[{"name":"web2","image":"a"}]}}}}`,
	} {
		expect(t, send(t, admin, http.MethodPost, path, "application/json", fields(t, body)), 201)
		t.Cleanup(func() { expect(t, send(t, admin, http.MethodDelete, path+"/roles", "", nil), 200) })
	}
	for _, c := range []struct {
		user, path string
		arguments  []string
		// says are parts of the comments.
		says    []string
		patches []patched
	}{
		{
			"roles.exposer", namespace + "services", []string{"--kind", "v1/Service", "--field", ".spec.type"}, []string{".spec.ports[*].nodePort. The verbs do not cover that"},
			[]patched{
				{"", `{"spec":{"type":"LoadBalancer"}}`, 403, `"type":"ClusterIP"`},
				{"", `{"spec":{"type":"NodePort"}}`, 403, `"type":"ClusterIP"`},
			},
		},
		{
			"roles.porter", namespace + "services", []string{"--kind", "v1/Service", "--field", ".spec.type", "--field", ".spec.ports[*].nodePort"}, []string{".spec.clusterIP, .spec.clusterIPs, .spec.ipFamilies, .spec.ipFamilyPolicy. The verbs"},
			[]patched{{"", `{"spec":{"type":"NodePort"}}`, 200, `"type":"NodePort"`}, {"", `{"spec":{"sessionAffinity":"ClientIP"}}`, 403, `"sessionAffinity":"None"`}},
		},
		{
			"roles.labeler", namespace + "configmaps", []string{"--kind", "v1/ConfigMap", "--field", `.metadata.labels["a.com/*"]`}, []string{`.metadata.labels["a.com"]`},
			[]patched{
				{"", `{"metadata":{"labels":{"a.com/x":"1"}}}`, 200, `"a.com/x":"1"`},
				{"", `{"metadata":{"labels":{"a.com":"1"}}}`, 200, `"a.com":"1"`},
				{"", `{"metadata":{"labels":{"b.com/x":"1"}}}`, 403, `{"a.com":"1","a.com/x":"1"}`},
			},
		},
		{
			"roles.imager", deployment, []string{"--kind", "apps/v1/Deployment", "--field", `.spec.template.spec.containers[name="web"].image`}, []string{`.spec.template.spec.initContainers[name="web"].image`},
			[]patched{
				{"", `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"b"}]}}}}`, 200, `"image":"b"`},
				{"", `{"spec":{"template":{"spec":{"containers":[{"name":"db","image":"evil"}]}}}}`, 403, `"image":"b"`},
				{"", `{"spec":{"template":{"spec":{"initContainers":[{"name":"web2","image":"evil"}]}}}}`, 403, `"image":"b"`},
			},
		},
		{
			"roles.sizer", deployment, []string{"--kind", "apps/v1/Deployment", "--field", `.spec.template.spec.containers[name="web"].resources`}, []string{`.spec.template.spec.initContainers[name="web"].resources`},
			[]patched{
				{"", `{"spec":{"template":{"spec":{"containers":[{"name":"web","resources":{"requests":{"cpu":"1"}}}]}}}}`, 200, `"cpu":"1"`},
				{"", `{"spec":{"template":{"spec":{"resources":{"requests":{"cpu":"2"}}}}}}`, 403, `"cpu":"1"`},
			},
		},
		{
			"roles.resizer", namespace + "pods", []string{"--kind", "v1/Pod", "--field", `.spec.containers[name="web"].resources`, "--subresource", "resize", "--only-subresources"}, []string{"On pods/resize the holder may change"},
			[]patched{
				{"/resize", `{"spec":{"containers":[{"name":"web","resources":{"requests":{"cpu":"200m"}}}]}}`, 200, `"cpu":"200m"`},
				{"/resize", `{"spec":{"containers":[{"name":"db","resources":{"requests":{"cpu":"300m"}}}]}}`, 403, `"cpu":"200m"`},
			},
		},
	} {
		t.Run(c.user, func(t *testing.T) {
			generate := exec.CommandContext(t.Context(), command(t, "fieldperm-gen"), append([]string{"roles", "--cluster"}, c.arguments...)...)
			var stderr bytes.Buffer
			generate.Stderr = &stderr
			text, err := generate.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, stderr.Bytes())
			}
			says(t, string(text), c.says...)
			var role rbacv1.ClusterRole
			must(t, yaml.UnmarshalStrict(text, &role))
			grant(t, s, c.user, role.Rules...)
			holder := wire(t, s, c.user)
			for _, p := range c.patches {
				answer := send(t, holder, http.MethodPatch, c.path+"/roles"+p.subresource, strategic, fields(t, p.body))
				if answer.Code != p.code {
					t.Errorf("%s: got %d, want %d: %s", p.body, answer.Code, p.code, answer.Body)
				}
				if p.code == 403 {
					says(t, answer.Status.Message, "may not change")
				}
				var object struct {
					Metadata struct{ Labels map[string]string }
					Spec     any
				}
				must(t, json.Unmarshal(send(t, admin, http.MethodGet, c.path+"/roles", "", nil).Body, &object))
				stored, err := json.Marshal([]any{object.Spec, object.Metadata.Labels})
				must(t, err)
				if text := string(stored); !strings.Contains(text, p.stored) || strings.Contains(text, "evil") || strings.Contains(text, "300m") {
					t.Errorf("after %s the API server has %s, want %s", p.body, text, p.stored)
				}
			}
		})
	}
}
