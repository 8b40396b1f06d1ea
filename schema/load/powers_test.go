package load

import (
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// builtInKinds returns the compiled built-in kinds.
func builtInKinds(t *testing.T) []*schema.Kind {
	t.Helper()
	builtIn, err := BuiltIn()
	if err != nil {
		t.Fatal(err)
	}
	catalogue, err := Catalogue(true)
	if err != nil {
		t.Fatal(err)
	}
	compiled, errs := compile.Compile(compile.Documents{Topologies: []compile.Topology{builtIn}, Permissions: catalogue})
	for _, err := range errs {
		t.Fatal(err)
	}
	return compiled.Kinds()
}

// TestC1_AKeyWithAPowerOfItsOwnHasItsOwnVerb: a key of labels or annotations may have a power that the other keys of its prefix do not
// have. The verb of the prefix does not cover it.
func TestC1_AKeyWithAPowerOfItsOwnHasItsOwnVerb(t *testing.T) {
	keys := 0
	for _, k := range builtInKinds(t) {
		k.Walk(func(p fieldpath.Pattern, n *schema.Node) {
			path := p.String()
			at := strings.Index(path, `s["`)
			if at < 0 || !strings.HasSuffix(path[:at+1], "labels") && !strings.HasSuffix(path[:at+1], "annotations") {
				return
			}
			keys++
			own := n.Permissions()[len(n.Permissions())-1]
			for _, p := range n.Permissions() {
				if p.BarsOnly() != (p != own) {
					t.Errorf("%s %s: %s covers the key beside %s", k.GroupVersionKind, path, p.Base(), own.Base())
				}
			}
		})
	}
	if keys < 100 {
		t.Errorf("there are %d keys only: the test does not see them", keys)
	}
}

// TestC1_KeysThatComponentsActOn: kube-apiserver, controllers, the scheduler, kubelet, kube-proxy and kubectl act on these labels and
// annotations. They were found in the source of Kubernetes 1.37.1.
func TestC1_KeysThatComponentsActOn(t *testing.T) {
	const label, annotation = `.metadata.labels["`, `.metadata.annotations["`
	kinds := map[string]*schema.Kind{}
	for _, k := range builtInKinds(t) {
		kinds[k.GroupVersionKind.String()] = k
	}
	for _, test := range []struct {
		group, version, kind, path, verb string
		powers                           []schema.Power
	}{
		{"", "v1", "ConfigMap", annotation + `kubectl.kubernetes.io/last-applied-configuration`, "appliedConfiguration", []schema.Power{schema.Escalates, schema.Deletes}},
		{"", "v1", "ConfigMap", label + `applyset.kubernetes.io/part-of`, "applySet", []schema.Power{schema.Deletes}},
		{"", "v1", "ConfigMap", annotation + `applyset.kubernetes.io/contains-group-kinds`, "applySet", []schema.Power{schema.Deletes}},
		{"apps", "v1", "Deployment", annotation + `deprecated.deployment.rollback.to`, "rollback", []schema.Power{schema.RunsCode}},
		{"apps", "v1", "Deployment", `.spec.template` + annotation + `controller.kubernetes.io/pod-deletion-cost`, "deletionCost", []schema.Power{schema.Deletes}},
		{"", "v1", "Pod", annotation + `container.apparmor.security.beta.kubernetes.io/web`, "confinement", []schema.Power{schema.DisablesProtection}},
		{"", "v1", "Pod", annotation + `controller.kubernetes.io/pod-deletion-cost`, "deletionCost", []schema.Power{schema.Deletes}},
		{"", "v1", "Pod", annotation + `batch.kubernetes.io/job-completion-index`, "completionIndex", []schema.Power{schema.Deletes}},
		{"", "v1", "Pod", annotation + `kubectl.kubernetes.io/default-container`, "defaultContainer", []schema.Power{schema.RedirectsTraffic}},
		{"", "v1", "Secret", annotation + `kubernetes.io/service-account.name`, "workloadIdentity", []schema.Power{schema.ReadsSecrets, schema.Escalates}},
		{"", "v1", "Secret", annotation + `kubernetes.io/service-account.uid`, "tokenValidity", []schema.Power{schema.Deletes}},
		{"", "v1", "Secret", label + `kubernetes.io/legacy-token-invalid-since`, "tokenValidity", []schema.Power{schema.DisablesProtection, schema.Deletes}},
		{"", "v1", "ServiceAccount", annotation + `kubernetes.io/enforce-mountable-secrets`, "mountableSecrets", []schema.Power{schema.ReadsSecrets, schema.DisablesProtection}},
		{"", "v1", "Namespace", annotation + `scheduler.alpha.kubernetes.io/node-selector`, "scheduling", []schema.Power{schema.PlacesPods}},
		{"", "v1", "Node", annotation + `alpha.kubernetes.io/provided-node-ip`, "addresses", []schema.Power{schema.RedirectsTraffic}},
		{"", "v1", "Service", annotation + `service.beta.kubernetes.io/load-balancer-source-ranges`, "loadBalancing", []schema.Power{schema.DisablesProtection}},
		{"", "v1", "Service", label + `service.kubernetes.io/service-proxy-name`, "proxy", []schema.Power{schema.RedirectsTraffic}},
		{"", "v1", "Endpoints", label + `endpointslice.kubernetes.io/skip-mirror`, "mirroring", []schema.Power{schema.RedirectsTraffic}},
		{"", "v1", "Endpoints", label + `service.kubernetes.io/service-proxy-name`, "proxy", []schema.Power{schema.RedirectsTraffic}},
		{"discovery.k8s.io", "v1", "EndpointSlice", label + `kubernetes.io/service-name`, "parent", []schema.Power{schema.RedirectsTraffic}},
		{"discovery.k8s.io", "v1", "EndpointSlice", label + `endpointslice.kubernetes.io/managed-by`, "controller", []schema.Power{schema.Deletes, schema.RedirectsTraffic}},
		{"discovery.k8s.io", "v1", "EndpointSlice", label + `service.kubernetes.io/headless`, "proxy", []schema.Power{schema.RedirectsTraffic}},
		{"", "v1", "PersistentVolumeClaim", annotation + `volume.beta.kubernetes.io/storage-class`, "storageClass", nil},
		{"", "v1", "PersistentVolumeClaim", annotation + `volume.kubernetes.io/selected-node`, "nodeSelection", []schema.Power{schema.PlacesPods}},
		{"", "v1", "PersistentVolumeClaim", annotation + `pv.kubernetes.io/bind-completed`, "binding", []schema.Power{schema.ReadsSecrets}},
		{"", "v1", "PersistentVolume", annotation + `volume.beta.kubernetes.io/mount-options`, "mountOptions", []schema.Power{schema.DisablesProtection}},
		{"", "v1", "PersistentVolume", annotation + `pv.beta.kubernetes.io/gid`, "supplementalGroup", []schema.Power{schema.Escalates}},
		{"", "v1", "PersistentVolume", annotation + `pv.kubernetes.io/provisioned-by`, "binding", []schema.Power{schema.ReadsSecrets, schema.Deletes}},
		{"", "v1", "PersistentVolume", label + `topology.kubernetes.io/zone`, "affinity", []schema.Power{schema.PlacesPods}},
		{"storage.k8s.io", "v1", "StorageClass", annotation + `storageclass.kubernetes.io/is-default-class`, "globalDefault", []schema.Power{schema.DisablesProtection}},
		{"networking.k8s.io", "v1", "IngressClass", annotation + `ingressclass.kubernetes.io/is-default-class`, "globalDefault", []schema.Power{schema.RedirectsTraffic}},
		{"networking.k8s.io", "v1", "Ingress", annotation + `kubernetes.io/ingress.class`, "controllerClass", []schema.Power{schema.RedirectsTraffic}},
		{"rbac.authorization.k8s.io", "v1", "ClusterRole", annotation + `rbac.authorization.kubernetes.io/autoupdate`, "automaticUpdate", []schema.Power{schema.Escalates}},
		{"flowcontrol.apiserver.k8s.io", "v1", "FlowSchema", annotation + `apf.kubernetes.io/autoupdate-spec`, "automaticUpdate", []schema.Power{schema.DisablesProtection}},
		{"coordination.k8s.io", "v1", "Lease", annotation + `kubernetes.io/peer-advertise-address`, "addresses", []schema.Power{schema.RedirectsTraffic}},
	} {
		k := kinds[runtimeschema.GroupVersionKind{Group: test.group, Version: test.version, Kind: test.kind}.String()]
		if k == nil {
			t.Errorf("kind %s.%s is not known", test.kind, test.group)
			continue
		}
		path, key, _ := strings.Cut(test.path, `["`)
		n := k.Root
		for step := range strings.SplitSeq(strings.TrimPrefix(path, "."), ".") {
			n = n.Map().Child(step)
		}
		n = n.Map().Child(key)
		permissions := n.Permissions()
		own := permissions[len(permissions)-1]
		if own.Base().String() != "granular:"+test.verb || own.BarsOnly() || !slices.Equal(n.Worth(own), test.powers) {
			t.Errorf("%s %s: %s, powers %v; want granular:%s, %v", test.kind, test.path, own.Base(), n.Worth(own), test.verb, test.powers)
		}
	}
}

// TestPowers_AVerbIsWorthTheFieldsThatItCovers: a more general verb has the powers of the verbs below it, except for those behind a
// barrier.
func TestPowers_AVerbIsWorthTheFieldsThatItCovers(t *testing.T) {
	worth := map[string][]schema.Power{}
	for _, k := range builtInKinds(t) {
		k.Walk(func(p fieldpath.Pattern, n *schema.Node) {
			for _, guard := range n.Permissions() {
				worth[k.Kind+"."+k.Group+" "+p.String()] = n.Worth(guard)
			}
		})
	}
	all := []schema.Power{schema.RunsCode, schema.ReadsSecrets, schema.Escalates, schema.DisablesProtection, schema.Deletes, schema.RedirectsTraffic, schema.PlacesPods}
	for place, want := range map[string][]schema.Power{
		"ConfigMap. .metadata":                                                 {schema.Escalates, schema.Deletes},
		"ConfigMap. .metadata.annotations":                                     {schema.Escalates, schema.Deletes},
		"Pod. .metadata.labels":                                                {schema.DisablesProtection, schema.Deletes, schema.RedirectsTraffic},
		"Namespace. .metadata.labels":                                          {schema.Escalates, schema.DisablesProtection, schema.Deletes, schema.RedirectsTraffic},
		"Deployment.apps .spec":                                                all,
		"Deployment.apps .spec.template.spec.containers[*].image":              {schema.RunsCode},
		"CustomResourceDefinition.apiextensions.k8s.io .metadata.annotations":  {schema.Escalates, schema.Deletes},
		"Node. .status":                                                        {schema.Deletes, schema.RedirectsTraffic, schema.PlacesPods},
		"CronJob.batch .status":                                                {schema.Deletes},
		"ResourceQuota. .status":                                               {schema.DisablesProtection},
		"ResourceQuota. .status.hard":                                          {schema.DisablesProtection},
		"ResourceQuota. .status.used":                                          {schema.DisablesProtection},
		"Job.batch .spec.backoffLimit":                                         {schema.Deletes},
		"Job.batch .spec.completions":                                          {schema.Deletes},
		"Job.batch .status":                                                    {schema.Deletes},
		"Job.batch .status.conditions":                                         {schema.Deletes},
		"Pod. .metadata.annotations":                                           {schema.Escalates, schema.DisablesProtection, schema.Deletes, schema.RedirectsTraffic},
		"Pod. .status.containerStatuses":                                       {schema.Deletes},
		"Secret. .metadata.annotations":                                        {schema.ReadsSecrets, schema.Escalates, schema.Deletes},
		"Endpoints. .metadata.labels":                                          {schema.Deletes, schema.RedirectsTraffic},
		"CustomResourceDefinition.apiextensions.k8s.io .status.conditions":     {schema.DisablesProtection},
		"CustomResourceDefinition.apiextensions.k8s.io .status.acceptedNames":  {schema.DisablesProtection},
		"CustomResourceDefinition.apiextensions.k8s.io .status.storedVersions": {schema.DisablesProtection, schema.Deletes},
		"StorageVersionMigration.storagemigration.k8s.io .spec.resource":       {schema.DisablesProtection, schema.Deletes},
		"Node. .status.images":                                                 {schema.PlacesPods},
		"CSINode.storage.k8s.io .spec.drivers[*]":                              {schema.PlacesPods},
		"ResourceSlice.resource.k8s.io .spec.devices":                          {schema.Deletes, schema.PlacesPods},
		"ResourceSlice.resource.k8s.io .spec.pool":                             {schema.PlacesPods},
		"StatefulSet.apps .status":                                             {schema.RunsCode},
	} {
		if got, known := worth[place]; !known || !slices.Equal(got, want) {
			t.Errorf("%s is worth %v, want %v", place, got, want)
		}
	}
}

// TestC2_BarriersOfDefinitions: update does not cover the fields that define the barriers of custom resources.
func TestC2_BarriersOfDefinitions(t *testing.T) {
	want := []string{`.metadata.annotations["fieldperm.dev/lossless-conversion"]`, `.metadata.annotations["fieldperm.dev/permission-verbs"]`, ".status.acceptedNames", ".status.storedVersions[*]"}
	var got []string
	for _, k := range builtInKinds(t) {
		if k.Kind == "CustomResourceDefinition" && k.Version == "v1" {
			k.Walk(func(p fieldpath.Pattern, n *schema.Node) {
				if slices.ContainsFunc(n.Permissions(), (*schema.Permission).MayBar) {
					got = append(got, p.String())
				}
			})
		}
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("barriers at %q, want %q", got, want)
	}
}

// TestC2_ADefinitionForgetsNoStoredVersion: the API server adds the storage version by itself, on CREATE and UPDATE, and that needs no
// verb. If a version is removed from the list, fieldperm no longer knows that objects are stored in it.
func TestC2_ADefinitionForgetsNoStoredVersion(t *testing.T) {
	s := compileBuiltIn(t)
	object := func(list string) string {
		return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"x"},"status":{"acceptedNames":{"plural":"x"}` + list + `}}`
	}
	for name, c := range map[string]struct {
		before, after string
		want          bool
	}{
		"the first one":                       {``, `,"storedVersions":["v1"]`, false},
		"another storage version":             {`,"storedVersions":["v1"]`, `,"storedVersions":["v1","v2"]`, false},
		"another order":                       {`,"storedVersions":["v1","v2"]`, `,"storedVersions":["v2","v1"]`, true},
		"a version is dropped":                {`,"storedVersions":["v1","v2"]`, `,"storedVersions":["v2"]`, true},
		"the last version is dropped":         {`,"storedVersions":["v1","v2"]`, `,"storedVersions":["v1"]`, true},
		"a version is replaced":               {`,"storedVersions":["v1"]`, `,"storedVersions":["v2"]`, true},
		"a version twice in place of another": {`,"storedVersions":["v1","v2"]`, `,"storedVersions":["v2","v2"]`, true},
		"none is left":                        {`,"storedVersions":["v1"]`, `,"storedVersions":[]`, true},
		"the list goes":                       {`,"storedVersions":["v1"]`, ``, true},
		"the list becomes null":               {`,"storedVersions":["v1"]`, `,"storedVersions":null`, true},
	} {
		if got := isBarred(t, s, gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition"), object(c.before), object(c.after)); got != c.want {
			t.Errorf("%s: a barrier is %t, want %t", name, got, c.want)
		}
	}
}
