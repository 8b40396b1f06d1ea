package audit

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

func labelSelector(labels map[string]string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: labels}
}

// Each rule about a role finds a fault, and does not find what is nearly the same and right.
func TestRolesRules(t *testing.T) {
	for name, c := range map[string]struct {
		rules     string
		namespace string
		files     bool
		less      bool
		// want are the level, the rule and the place, and what the cure has.
		want, cure string
	}{
		"misspelt-marker":                         {rules: `{apiGroups: [apps], resources: [deployments], verbs: [granluar]}`, want: "error misspelt-marker rules[0].verbs[0]", cure: `"granular"`},
		"misspelt-marker by case":                 {rules: `{apiGroups: [apps], resources: [deployments], verbs: [Granular]}`, want: "error misspelt-marker rules[0].verbs[0]", cure: `"granular"`},
		"misspelt-marker with a name":             {rules: `{apiGroups: [apps], resources: [deployments], verbs: ["granuler:scale"]}`, want: "error misspelt-marker rules[0].verbs[0]", cure: `"granular:scale"`},
		"misspelt-marker: a blank":                {rules: `{apiGroups: [apps], resources: [deployments], verbs: ["granular "]}`, want: "error misspelt-marker rules[0].verbs[0]", cure: `"granular"`},
		"no misspelt-marker: other verbs":         {rules: `{apiGroups: [apps], resources: [deployments], verbs: [grant, get, impersonate, "impersonate-on:x:get"]}`},
		"invalid-verb":                            {rules: `{apiGroups: [apps], resources: [deployments], verbs: [granular, "granular:image*"]}`, want: "error invalid-verb rules[0].verbs[1]", cure: `"granular:image"`},
		"invalid-verb: not closed":                {rules: `{apiGroups: [apps], resources: [deployments], verbs: [granular, "granular:image(web"]}`, want: "error invalid-verb rules[0].verbs[1]", cure: "end it with"},
		"no invalid-verb":                         {rules: `{apiGroups: [apps], resources: [deployments], verbs: [granular, "granular:image(web)"]}`},
		"unknown-verb":                            {rules: `{apiGroups: [apps], resources: [deployments], verbs: [granular, "granular:imag(web)"]}`, want: "error unknown-verb rules[0].verbs[1]", cure: `"granular:image(web)"`},
		"unknown-verb: a field":                   {rules: `{apiGroups: [apps], resources: [deployments], verbs: [granular, "granular:replicas"]}`, want: "error unknown-verb rules[0].verbs[1]", cure: `write "granular:scale", the verb of .spec.replicas`},
		"unknown-verb, kinds missing":             {rules: `{apiGroups: [apps], resources: [deployments], verbs: [granular, "granular:imag"]}`, less: true, want: "warning unknown-verb rules[0].verbs[1]"},
		"unknown-verb of others, in files":        {rules: `{apiGroups: [apps], resources: [deployments], verbs: [granular, "granular:other.com/budget"]}`, files: true, want: "note unknown-verb rules[0].verbs[1]", cure: "--crd"},
		"the verb of creations is of no field":    {rules: `{apiGroups: [apps], resources: [deployments], verbs: [granular, create, "granular:creation"]}`},
		"no unknown-verb":                         {rules: `{apiGroups: [example.com], resources: [gadgets], verbs: [granular, "granular:example.com/colour"]}`},
		"unknown-resource: the group":             {rules: `{apiGroups: [""], resources: [deployments], verbs: [granular]}`, want: "error unknown-resource rules[0].resources[0]", cure: `apiGroups: ["apps"]`},
		"unknown-resource: singular":              {rules: `{apiGroups: [apps], resources: [deployment], verbs: [granular]}`, want: "error unknown-resource rules[0].resources[0]", cure: `"deployments"`},
		"unknown-resource: after a slash":         {rules: `{apiGroups: [apps], resources: ["deployments/*"], verbs: [granular]}`, want: "error unknown-resource rules[0].resources[0]", cure: `"deployments/status"`},
		"unknown-resource: subresource":           {rules: `{apiGroups: [apps], resources: [deployments/scal], verbs: [granular]}`, want: "error unknown-resource rules[0].resources[0]", cure: `"deployments/scale"`},
		"unknown-resource: no such group":         {rules: `{apiGroups: [other.com], resources: [things], verbs: [granular]}`, want: "warning unknown-resource rules[0].resources[0]"},
		"unknown-resource, in files":              {rules: `{apiGroups: [other.com], resources: [things], verbs: [granular]}`, files: true, want: "note unknown-resource rules[0].resources[0]", cure: "--crd"},
		"unknown-resource: no scale":              {rules: `{apiGroups: [example.com], resources: [gadgets/scale], verbs: [granular]}`, want: "error unknown-resource rules[0].resources[0]"},
		"no unknown-resource: one of both":        {rules: `{apiGroups: ["", apps], resources: [pods, deployments], verbs: [granular]}`},
		"no unknown-resource: wildcards":          {rules: `{apiGroups: ["*"], resources: ["*", "*/scale"], verbs: [granular]}`},
		"no unknown-resource: other verbs":        {rules: `{apiGroups: [""], resources: [deployments], verbs: [get, update]}`},
		"verb-not-on-resource":                    {rules: `{apiGroups: [apps], resources: [deployments], verbs: [granular, "granular:taints"]}`, want: "error verb-not-on-resource rules[0].verbs[1]", cure: "nodes"},
		"verb-not-on-resource: scale":             {rules: `{apiGroups: [apps], resources: [deployments/scale], verbs: [granular, "granular:image"]}`, want: "error verb-not-on-resource rules[0].verbs[1]", cure: "deployments.apps"},
		"verb-not-on-resource: labels":            {rules: `{apiGroups: [apps], resources: [deployments/scale], verbs: [granular, "granular:labels"]}`, want: "error verb-not-on-resource rules[0].verbs[1]", cure: "deployments.apps"},
		"verb-not-on-resource: wildcard":          {rules: `{apiGroups: [apps], resources: ["*"], verbs: [granular, "granular:taints"]}`, want: "error verb-not-on-resource rules[0].verbs[1]", cure: "nodes"},
		"verb-not-on-resource: URL":               {rules: `{nonResourceURLs: [/x], verbs: ["granular:scale"]}`, want: "error verb-not-on-resource rules[0].verbs[0]"},
		"no verb-not-on-resource":                 {rules: `{apiGroups: ["", apps], resources: [deployments, nodes], verbs: [granular, "granular:taints"]}`},
		"no verb-not-on-resource: all":            {rules: `{apiGroups: ["*"], resources: ["*"], verbs: [granular, "granular:taints"]}`},
		"verb-needs-subresource":                  {rules: `{apiGroups: [apps], resources: [deployments], verbs: [granular, "granular:condition(Ready)"]}`, want: "error verb-needs-subresource rules[0].verbs[1]", cure: `"deployments/status"`},
		"verb-needs-subresource of a CRD":         {rules: `{apiGroups: [example.com], resources: [gadgets], verbs: [granular, "granular:status"]}`, want: "error verb-needs-subresource rules[0].verbs[1]", cure: `"gadgets/status"`},
		"no verb-needs-subresource":               {rules: `{apiGroups: [apps], resources: [deployments/status], verbs: [granular, "granular:condition(Ready)"]}`},
		"no verb-needs-subresource: nodes":        {rules: `{apiGroups: [""], resources: [nodes], verbs: [granular, "granular:condition(Ready)"]}`},
		"scale-not-granted":                       {rules: `{apiGroups: [apps], resources: [deployments], verbs: [granular, "granular:scale"]}`, want: "note scale-not-granted rules[0].verbs[1]", cure: `"deployments/scale"`},
		"no scale-not-granted: more":              {rules: `{apiGroups: [apps], resources: [deployments], verbs: [granular, "granular:specification"]}`},
		"no scale-not-granted: other rule":        {rules: `{apiGroups: [apps], resources: [deployments], verbs: [granular, "granular:scale"]}, {apiGroups: [apps], resources: ["*/scale"], verbs: [granular, "granular:scale"]}`},
		"no scale-not-granted: no scale":          {rules: `{apiGroups: [apps], resources: [daemonsets], verbs: [granular, "granular:template"]}`},
		"parameter-never-matches":                 {rules: `{apiGroups: [""], resources: [namespaces], verbs: [granular, "granular:label(pod-security.kubernetes.io/enforce)"]}`, want: "error parameter-never-matches rules[0].verbs[1]", cure: `"granular:label(pod-security.kubernetes.io)"`},
		"parameter-never-matches: none":           {rules: `{apiGroups: [apps], resources: [deployments/scale], verbs: [granular, "granular:scale(5)"]}`, want: "error parameter-never-matches rules[0].verbs[1]", cure: `"granular:scale"`},
		"parameter-never-matches: wildcard":       {rules: `{apiGroups: ["*"], resources: ["*"], verbs: [granular, "granular:scale(x)"]}`, want: "error parameter-never-matches rules[0].verbs[1]", cure: `"granular:scale"`},
		"parameter-never-matches: in a group":     {rules: `{apiGroups: [apps], resources: ["*"], verbs: [granular, "granular:label(a/b)"]}`, want: "error parameter-never-matches rules[0].verbs[1]", cure: `"granular:label(a)"`},
		"parameter-never-matches: */scale":        {rules: `{apiGroups: ["*"], resources: ["*/scale"], verbs: [granular, "granular:scale(x)"]}`, want: "error parameter-never-matches rules[0].verbs[1]", cure: `"granular:scale"`},
		"parameter-never-matches, kinds missing":  {rules: `{apiGroups: ["*"], resources: ["*"], verbs: [granular, "granular:scale(x)"]}`, less: true, want: "warning parameter-never-matches rules[0].verbs[1]"},
		"no parameter-never-matches: wildcard":    {rules: `{apiGroups: ["*"], resources: ["*"], verbs: [granular, "granular:image(web)", "granular:label(a)"]}`},
		"no parameter-never-matches":              {rules: `{apiGroups: [""], resources: [namespaces], verbs: [granular, "granular:label(pod-security.kubernetes.io)"]}`},
		"no parameter-never-matches: name":        {rules: `{apiGroups: [apps], resources: [deployments], verbs: [granular, "granular:image(a/b)"]}`},
		"marker-without-effect":                   {rules: `{apiGroups: [""], resources: [pods, pods/exec], verbs: [granular]}`, want: "warning marker-without-effect rules[0].resources[1]"},
		"marker-without-effect: webhooks":         {rules: `{apiGroups: [admissionregistration.k8s.io], resources: [validatingwebhookconfigurations], verbs: [granular]}`, want: "warning marker-without-effect rules[0].resources[0]"},
		"no marker-without-effect":                {rules: `{apiGroups: [""], resources: [pods/status, pods/resize], verbs: [granular]}`},
		"create-with-resource-names":              {rules: `{apiGroups: [""], resources: [pods], resourceNames: [a], verbs: [get, create]}`, want: "warning create-with-resource-names rules[0].verbs[1]"},
		"no create-with-resource-names":           {rules: `{apiGroups: [""], resources: [serviceaccounts/token], resourceNames: [a], verbs: [create]}, {apiGroups: [""], resources: [pods], verbs: [create]}`},
		"no create-with-resource-names: by apply": {rules: `{apiGroups: [""], resources: [configmaps], resourceNames: [a], verbs: [create, patch]}`},
		"cluster-scoped":                          {rules: `{apiGroups: [""], resources: [nodes], verbs: [granular, "granular:taints"]}`, namespace: "shop", want: "error cluster-scoped-resource-in-role rules[0].resources[0]"},
		"no cluster-scoped":                       {rules: `{apiGroups: [""], resources: [namespaces], verbs: [granular, "granular:labels"]}`, namespace: "shop"},
		"verb-covers-all-fields":                  {rules: `{apiGroups: [""], resources: [pods], verbs: [granular, "granular:*"]}`, want: "note verb-covers-all-fields rules[0].verbs[1]"},
		"no verb-covers-all-fields, patch":        {rules: `{apiGroups: [""], resources: [pods], verbs: [patch, "granular:*"]}`},
		"no verb-covers-all-fields":               {rules: `{apiGroups: [""], resources: [pods], verbs: [granular, "granular:specification"]}`},
		"wildcard-satisfies-barrier":              {rules: `{apiGroups: [apps], resources: [deployments], verbs: ["*"]}`, want: "warning wildcard-satisfies-barrier rules[0].verbs[0]"},
		"no wildcard: no barrier there":           {rules: `{apiGroups: [apps], resources: [replicasets], verbs: ["*"]}`},
		"no wildcard: only tried":                 {rules: `{apiGroups: [apps], resources: [daemonsets], verbs: ["*"]}`},
		"no wildcard: update":                     {rules: `{apiGroups: [apps], resources: [deployments], verbs: [update, patch]}`},
		"no wildcard: no namespace":               {rules: `{apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: ["*"]}`, namespace: "shop"},
		"wildcard: in the cluster":                {rules: `{apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: ["*"]}`, want: "warning wildcard-satisfies-barrier rules[0].verbs[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			var rules []rbacv1.PolicyRule
			if err := yaml.Unmarshal([]byte("["+c.rules+"]"), &rules); err != nil {
				t.Fatal(err)
			}
			role := &Role{Ref: Ref{Kind: clusterRoleKind, Namespace: "", Name: "r"}, Rules: rules}
			if c.namespace != "" {
				role.Ref = Ref{Kind: roleKind, Namespace: c.namespace, Name: "r"}
			}
			var got, cures []string
			take := func(f Finding) {
				got, cures = append(got, string(f.Level)+" "+f.Rule+" "+f.Path), append(cures, f.Cure)
			}
			known := shared(t)
			(&reviewer{known: known, incomplete: c.less || c.files, files: c.files, report: take}).review(role)
			s := &Scan{Known: known, Report: take}
			s.wildcards(role, keepRole(role))
			if want := strings.Fields(c.want); len(want) == 0 && len(got) > 0 || len(want) > 0 && !slices.Equal(got, []string{c.want}) {
				t.Fatalf("got %q, want %q", got, c.want)
			}
			if len(cures) > 0 && !strings.Contains(cures[0], c.cure) {
				t.Errorf("cure %q, want %q in it", cures[0], c.cure)
			}
		})
	}
}
