package fieldrole

import (
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/fieldperm/fieldperm/internal/rolemarkers"
)

// read writes a package and reads its markers.
func read(t *testing.T, code string) *rolemarkers.Markers {
	t.Helper()
	dir := t.TempDir()
	for file, text := range map[string]string{"go.mod": "module a\n\ngo 1.26\n", "a.go": "package a\n\n" + code} {
		if err := os.WriteFile(dir+"/"+file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, errs := rolemarkers.Read(rolemarkers.Options{Paths: []string{"./..."}, Dir: dir, RoleName: "manager-role"})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return out
}

func TestController_Golden(t *testing.T) {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	m, errs := rolemarkers.Read(rolemarkers.Options{Paths: []string{"../rolemarkers/testdata/controller"}, Dir: dir, RoleName: "manager-role"})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	roles, comments, errs := kinds(t).Controller(t.Context(), m, Options{})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	text, err := rolemarkers.YAML("# "+strings.Join(comments, "\n# ")+"\n", roles)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "controller_plain.yaml", m.Plain)
	golden(t, "controller_fieldperm.yaml", text)
}

// TestController_NothingElseChanges: of each role only the verbs on marked resources differ, and no generic verb is left on them.
func TestController_NothingElseChanges(t *testing.T) {
	m := read(t, `
// +kubebuilder:rbac:groups=apps;extensions,resources=deployments;daemonsets,verbs=get;create;update;patch
// +kubebuilder:rbac:groups=apps,resources=deployments,resourceNames=one,verbs=patch;delete
// +kubebuilder:rbac:groups=apps,resources=deployments,namespace=n,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments/status,verbs=update
// +kubebuilder:rbac:groups="",resources=pods,verbs=*
// +kubebuilder:rbac:urls=/metrics,verbs=get

// +fieldperm:rbac:groups=apps,resources=deployments,fields=.spec.replicas
`)
	roles, _, errs := kinds(t).Controller(t.Context(), m, Options{})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	before, after := flat(m.Roles), flat(roles)
	for of := range after {
		if _, had := before[of]; !had && !strings.HasSuffix(of, " get") && !strings.HasSuffix(of, " granular") && !strings.HasSuffix(of, " granular:scale") {
			t.Errorf("new: %s", of)
		}
	}
	for of := range before {
		replaced := strings.Contains(of, " apps deployments ") && (strings.HasSuffix(of, " update") || strings.HasSuffix(of, " patch"))
		if after[of] == replaced {
			t.Errorf("%s: in the role with fieldperm %t", of, after[of])
		}
		if granular := of[:strings.LastIndex(of, " ")] + " granular"; replaced && !after[granular] {
			t.Errorf("missing: %s", granular)
		}
	}
	if len(before) < 15 {
		t.Errorf("only %d rights", len(before))
	}
}

// flat returns each right of roles as a text.
func flat(roles []any) map[string]bool {
	out := map[string]bool{}
	add := func(name string, rules []rbacv1.PolicyRule) {
		for _, r := range rules {
			for _, group := range append(slices.Clone(r.APIGroups), "-") {
				for _, resource := range append(slices.Clone(r.Resources), r.NonResourceURLs...) {
					for _, verb := range r.Verbs {
						if (group == "-") == (len(r.NonResourceURLs) > 0) {
							out[name+" "+strings.Join(r.ResourceNames, ",")+" "+group+" "+resource+" "+verb] = true
						}
					}
				}
			}
		}
	}
	for _, role := range roles {
		switch role := role.(type) {
		case rbacv1.ClusterRole:
			add(role.Name, role.Rules)
		case rbacv1.Role:
			add(role.Namespace+"/"+role.Name, role.Rules)
		}
	}
	return out
}

func TestController_Faults(t *testing.T) {
	const plain = "// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=update;patch\n"
	const ours = "// +fieldperm:rbac:groups=apps,resources=deployments,fields=.spec.replicas\n"
	for name, c := range map[string]struct{ code, want string }{
		"no plain marker of the resource":  {plain + ours + "// +fieldperm:rbac:groups=apps,resources=statefulsets,fields=.spec.replicas\n", `a.go:5:42: resource "statefulsets" of group "apps": the plain role does not grant update or patch on it: add a marker +kubebuilder:rbac`},
		"plain marker that is not read":    {plain + "// +fieldperm:rbac:groups=apps,resources=statefulsets,fields=.spec.replicas\n\n// f is a function.\n// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=update\nfunc f() {}\n", `resource "statefulsets" of group "apps": the plain role does not grant`},
		"plain marker without update":      {"// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;create\n" + ours, "does not grant update or patch"},
		"unknown field":                    {plain + "// +fieldperm:rbac:groups=apps,resources=deployments,fields=.spec.paused;.spec.replica\n", `a.go:4:74: path ".spec.replica" of Deployment: ".spec" has no field "replica": use "replicas"`},
		"unknown resource":                 {plain + "// +fieldperm:rbac:groups=apps,resources=deployment,fields=.spec.replicas\n", `resource "deployment.apps" is not known: use "deployments"`},
		"another group":                    {plain + "// +fieldperm:rbac:groups=core,resources=deployments,fields=.spec.replicas\n", `resource "deployments" is not known: use group "apps"`},
		"unknown version":                  {plain + "// +fieldperm:rbac:groups=apps,resources=deployments,fields=.spec.replicas,versions=v2\n", `has no version "v2": use v1`},
		"lossy version":                    {"// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=update;patch\n// +fieldperm:rbac:groups=autoscaling,resources=horizontalpodautoscalers,fields=.spec.maxReplicas,versions=v1\n", "use version v2"},
		"the status of the object":         {plain + "// +fieldperm:rbac:groups=apps,resources=deployments,fields=.status.replicas\n", "is written through deployments/status: name that resource"},
		"the specification of the status":  {"// +kubebuilder:rbac:groups=apps,resources=deployments/status,verbs=update;patch\n// +fieldperm:rbac:groups=apps,resources=deployments/status,fields=.spec.replicas\n", "it is written through deployments and deployments/scale"},
		"only the wildcard":                {"// +kubebuilder:rbac:groups=example.com,resources=widgets,verbs=update;patch\n// +fieldperm:rbac:groups=example.com,resources=widgets,fields=.settings\n", "only granular:* covers it"},
		"all resources":                    {plain + "// +kubebuilder:rbac:groups=apps,resources=*,verbs=update\n" + ours, `a.go:4:4: marker grants update on all resources, with "deployments" of group "apps" among them`},
		"all groups":                       {plain + "// +kubebuilder:rbac:groups=*,resources=deployments,verbs=patch\n" + ours, "marker grants patch on all resources"},
		"all verbs":                        {"// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=*\n" + ours, "marker grants * on \"deployments\" of group \"apps\", whose fields a marker +fieldperm:rbac names: name the verbs one by one"},
		"all subresources":                 {"// +kubebuilder:rbac:groups=apps,resources=*/status,verbs=update\n// +kubebuilder:rbac:groups=apps,resources=deployments/status,verbs=update\n// +fieldperm:rbac:groups=apps,resources=deployments/status,fields=.status\n", "marker grants update on all resources"},
		"a resource beside a wildcard":     {"// +kubebuilder:rbac:groups=apps,resources=deployments;*,verbs=update\n" + ours, "marker grants update on all resources"},
		"a resource that takes no marker":  {"// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,verbs=update;patch\n// +fieldperm:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,fields=.webhooks\n", "granular verbs do not let writes of it in"},
		"a subresource that is not stored": {"// +kubebuilder:rbac:groups=core,resources=pods/exec,verbs=create\n// +fieldperm:rbac:groups=core,resources=pods/exec,fields=.spec.nodeName\n", `subresource "exec" of pods: is not known to write fields`},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, errs := kinds(t).Controller(t.Context(), read(t, c.code), Options{})
			if len(errs) == 0 {
				t.Fatal("no error")
			}
			for _, err := range errs {
				if !strings.HasPrefix(err.Error(), "a.go:") {
					t.Errorf("no position: %v", err)
				}
			}
			if text := errs[0].Error(); !strings.Contains(text, c.want) {
				t.Errorf("got %v, want %q", errs, c.want)
			}
		})
	}
	if (&rolemarkers.Fault{Position: token.Position{Filename: "a.go", Line: 1, Column: 2}, Message: "x"}).Error() != "a.go:1:2: x" {
		t.Error("the form of positions changed")
	}
}

// TestController_CreateBecomesTheVerbOfCreations: of a role that grants create, and of no other.
func TestController_CreateBecomesTheVerbOfCreations(t *testing.T) {
	for verbs, want := range map[string]bool{"update;patch": false, "create;update;patch": true} {
		m := read(t, "// +kubebuilder:rbac:groups=apps,resources=deployments,verbs="+verbs+"\n// +fieldperm:rbac:groups=apps,resources=deployments,fields=.spec.replicas,verbs="+verbs+"\n")
		roles, _, errs := kinds(t).Controller(t.Context(), m, Options{})
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		got := false
		for of := range flat(roles) {
			got = got || strings.HasSuffix(of, " granular:creation")
			if strings.HasSuffix(of, " create") {
				t.Errorf("%s: %s", verbs, of)
			}
		}
		if got != want {
			t.Errorf("%s: granular:creation %t", verbs, got)
		}
	}
}

// TestController_ACreateIsNoUpdate: with fieldperm a controller may not change what it may only create without it, such as Leases of other
// names than its own.
func TestController_ACreateIsNoUpdate(t *testing.T) {
	m := read(t, `
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=create;get
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=update;patch,resourceNames=leader

// +fieldperm:rbac:groups=coordination.k8s.io,resources=leases,fields=.spec,verbs=create;update;patch
`)
	roles, _, errs := kinds(t).Controller(t.Context(), m, Options{})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	created := false
	for of := range flat(roles) {
		created = created || strings.HasSuffix(of, " create")
		if strings.Contains(of, "granular") && !strings.Contains(of, "leader") {
			t.Errorf("the role has %q", of)
		}
	}
	if !created {
		t.Error("the role lost create")
	}
}
