//go:build controllers

package controllers

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// Resources that are no part of the end state: they are about what happened and who runs, or belong to fieldperm and the test.
var ignored = map[string]bool{
	"events": true, "leases.coordination.k8s.io": true, "componentstatuses": true, "events.events.k8s.io": true, "ipaddresses.networking.k8s.io": true,
	"apiservices.apiregistration.k8s.io": true, "customresourcedefinitions.apiextensions.k8s.io": true,
	"permissionobservations.fieldperm.dev": true, "validatingwebhookconfigurations.admissionregistration.k8s.io": true,
}

// What differs between two runs by its nature, and what is compared in its place.
var differing = []struct {
	pattern *regexp.Regexp
	same    string
}{
	{regexp.MustCompile(`(?s)-----BEGIN CERTIFICATE-----.*-----END CERTIFICATE-----`), "<certificate>"},
	{regexp.MustCompile(`\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z`), "<time>"},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "<uid>"},
	{regexp.MustCompile(`\b10\.\d+\.\d+\.\d+\b`), "<address>"},
	{regexp.MustCompile(`serving:[0-9a-f]{24}`), "serving:<hash>"},
	{regexp.MustCompile(`minutely-\d+`), "minutely-<time>"},
	{regexp.MustCompile(`\b(worker|away)-\d\b`), "$1-<n>"},
	{regexp.MustCompile(`\b(kube-api-access|outside)-[a-z0-9]{5}\b`), "$1-<name>"},
	// A message of a condition names the Pod or the ReplicaSet that was last when the condition changed.
	{regexp.MustCompile(`"[a-z]+-[a-z0-9]{8,10}(-[a-z0-9]{5})?"`), "<name>"},
}

var (
	counted = []string{"generation", "observedGeneration", "resourceVersion", "uid", "creationTimestamp", "managedFields", "selfLink", "request", "certificate", "ca.crt"}
	ordered = []string{"conditions", "endpoints", "addresses", "notReadyAddresses", "taints", "finalizers", "ownerReferences", "containerStatuses", "volumesAttached", "succeeded"}
)

// keepState writes every object, without what differs between two runs by its nature, to the directory of the run, one per line.
func (r *run) keepState() {
	r.t.Helper()
	resources, err := r.world.client.ServerPreferredResources()
	must(r.t, err)
	resources = discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "create"}}, resources)
	var all []*unstructured.Unstructured
	var kinds []string
	for _, list := range resources {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		must(r.t, err)
		for _, s := range list.APIResources {
			name := schema.GroupResource{Group: version.Group, Resource: s.Name}
			if ignored[name.String()] {
				continue
			}
			objects, err := r.world.objects.Resource(version.WithResource(s.Name)).List(r.t.Context(), metav1.ListOptions{})
			must(r.t, err)
			for i := range objects.Items {
				if o := &objects.Items[i]; !own(o) {
					all, kinds = append(all, o), append(kinds, name.String())
				}
			}
		}
	}
	var names []string
	for _, o := range all {
		if prefix := o.GetGenerateName(); prefix != "" {
			names = append(names, o.GetName(), prefix+"~")
		}
	}
	// Names of Pods of ReplicaSets have those of the ReplicaSets in them.
	replace := strings.NewReplacer(names...)
	var out []string
	for i, o := range all {
		normal, _ := json.Marshal(normalize(o.Object, replace))
		out = append(out, kinds[i]+" "+string(normal))
	}
	sort.Strings(out)
	must(r.t, os.WriteFile(filepath.Join(r.dir, "state.txt"), []byte(strings.Join(out, "\n")), 0o600))
}

// state returns what keepState wrote.
func state(t *testing.T, dir string) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "state.txt"))
	must(t, err)
	return strings.Split(string(content), "\n")
}

// own reports whether an object is part of the test and not of the scenario: the roles that differ on purpose, and the probes of the stack.
func own(o *unstructured.Unstructured) bool {
	name := o.GetName()
	return o.GetAPIVersion() == "rbac.authorization.k8s.io/v1" && (strings.HasPrefix(name, "system:") || strings.HasPrefix(name, "probe-")) ||
		strings.HasPrefix(name, "fieldperm") || strings.HasPrefix(name, "probe") ||
		// The endpoints of the API server have its port.
		o.GetNamespace() == "default" && name == "kubernetes"
}

func normalize(value any, names *strings.Replacer) any {
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, v := range value {
			if slices.Contains(counted, key) {
				continue
			}
			v = normalize(v, names)
			if list, ok := v.([]any); ok && slices.Contains(ordered, key) {
				slices.SortFunc(list, func(a, b any) int { return strings.Compare(text(a), text(b)) })
			}
			out[text(normalize(key, names))] = v
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i := range value {
			out[i] = normalize(value[i], names)
		}
		return out
	case string:
		value = names.Replace(value)
		for _, d := range differing {
			value = d.pattern.ReplaceAllString(value, d.same)
		}
		return value
	default:
		return value
	}
}

func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	out, _ := json.Marshal(v)
	return string(out)
}

// compare returns the lines that only one of two end states has.
func compare(want, got []string) string {
	out := ""
	for i, j := 0, 0; i < len(want) || j < len(got); {
		switch {
		case j == len(got) || i < len(want) && want[i] < got[j]:
			out += fmt.Sprintf("- %s\n", want[i])
			i++
		case i == len(want) || got[j] < want[i]:
			out += fmt.Sprintf("+ %s\n", got[j])
			j++
		default:
			i, j = i+1, j+1
		}
	}
	return out
}
