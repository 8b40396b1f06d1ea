//go:build controllers

package trial

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

// Differing is a text that differs between two runs by its nature, and what is compared in its place.
type Differing struct {
	Pattern *regexp.Regexp
	Same    string
}

var differing = []Differing{
	{regexp.MustCompile(`(?s)-----BEGIN CERTIFICATE-----.*-----END CERTIFICATE-----`), "<certificate>"},
	{regexp.MustCompile(`\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z`), "<time>"},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "<uid>"},
	{regexp.MustCompile(`\b10\.\d+\.\d+\.\d+\b`), "<address>"},
	{regexp.MustCompile(`\bkube-api-access-[a-z0-9]{5}\b`), "kube-api-access-<name>"},
}

var (
	counted = []string{"generation", "observedGeneration", "resourceVersion", "uid", "creationTimestamp", "managedFields", "selfLink", "request", "certificate", "ca.crt"}
	ordered = []string{"conditions", "endpoints", "addresses", "notReadyAddresses", "taints", "finalizers", "ownerReferences", "containerStatuses", "volumesAttached", "succeeded"}
)

// keepState writes every object, without what differs between two runs by its nature, to the directory of the run, one per line.
func (r *Run) keepState() {
	r.T.Helper()
	resources, err := r.Client.ServerPreferredResources()
	Must(r.T, err)
	resources = discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "create"}}, resources)
	var all []*unstructured.Unstructured
	var kinds []string
	for _, list := range resources {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		Must(r.T, err)
		for _, s := range list.APIResources {
			name := schema.GroupResource{Group: version.Group, Resource: s.Name}
			if ignored[name.String()] || slices.Contains(r.trial.Ignored, name.String()) {
				continue
			}
			objects, err := r.Objects.Resource(version.WithResource(s.Name)).List(r.T.Context(), metav1.ListOptions{})
			Must(r.T, err)
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
	n := normalizer{strings.NewReplacer(names...), slices.Concat(differing, r.trial.Differing)}
	var out []string
	for i, o := range all {
		if r.trial.Volatile != nil {
			r.trial.Volatile(o)
		}
		normal, _ := json.Marshal(n.value(o.Object))
		out = append(out, kinds[i]+" "+string(normal))
	}
	sort.Strings(out)
	Must(r.T, os.WriteFile(filepath.Join(r.Dir, "state.txt"), []byte(strings.Join(out, "\n")), 0o600))
}

// state returns what keepState wrote, without the roles and bindings that proposals change.
func state(t *testing.T, dir string, proposals []*proposal) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "state.txt"))
	Must(t, err)
	return slices.DeleteFunc(strings.Split(string(content), "\n"), func(line string) bool {
		_, object, _ := strings.Cut(line, " ")
		is := &unstructured.Unstructured{}
		Must(t, json.Unmarshal([]byte(object), &is.Object))
		return slices.ContainsFunc(proposals, func(p *proposal) bool {
			return slices.ContainsFunc(p.objects, func(o *unstructured.Unstructured) bool {
				return o.GetKind() == is.GetKind() && o.GetNamespace() == is.GetNamespace() && o.GetName() == is.GetName()
			})
		})
	})
}

// own reports whether an object is part of the test and not of the scenario: the roles that differ on purpose, and the probes of the stack.
func own(o *unstructured.Unstructured) bool {
	name := o.GetName()
	return o.GetAPIVersion() == "rbac.authorization.k8s.io/v1" && (strings.HasPrefix(name, "system:") || o.GetLabels()[added] != "") ||
		strings.HasPrefix(name, "fieldperm") || strings.HasPrefix(name, "probe") ||
		// The endpoints of the API server have its port.
		o.GetNamespace() == "default" && name == "kubernetes" ||
		// It holds the day on which kube-apiserver started, and a run may begin on the day after.
		o.GetNamespace() == "kube-system" && name == "kube-apiserver-legacy-service-account-token-tracking"
}

// normalizer replaces what differs between two runs by its nature.
type normalizer struct {
	names *strings.Replacer
	texts []Differing
}

func (n *normalizer) value(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, v := range value {
			if slices.Contains(counted, key) {
				continue
			}
			v = n.value(v)
			if list, ok := v.([]any); ok && slices.Contains(ordered, key) {
				slices.SortFunc(list, func(a, b any) int { return strings.Compare(text(a), text(b)) })
			}
			out[text(n.value(key))] = v
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i := range value {
			out[i] = n.value(value[i])
		}
		return out
	case string:
		value = n.names.Replace(value)
		for _, d := range n.texts {
			value = d.Pattern.ReplaceAllString(value, d.Same)
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
