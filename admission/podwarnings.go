package admission

import (
	"fmt"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// A barrier on Pods leaves two ways to the same Pod: a controller makes it from a template, and the API server fills the field from another one. Authors
// are told both.

// specification is the path of the fragment podSpec in Pods.
const specification = ".spec"

// SchemaWarnings returns warnings for the author of a PermissionSchema about other ways to write the fields of Pods that it has barriers on.
func SchemaWarnings(d *compile.PermissionDocument) []string {
	within := specification
	switch {
	case d.Rank != compile.RankAdministrator:
		return nil
	case d.Fragment == "podSpec":
		within = ""
	case d.Group != "" || d.Kind != "Pod":
		return nil
	}
	var out []string
	for _, e := range d.Entries {
		path, isInside := strings.CutPrefix(e.Path, within)
		if !e.IsBarrier() || !isInside || e.Fragment != (compile.Fragment{}) {
			continue
		}
		if within != "" {
			out = append(out, fmt.Sprintf("%s: the barrier holds for Pods, and not for the templates that controllers make them from: write a PermissionSchema with fragment: podSpec and the path %q", e.Path, path))
		}
		if from := filledFrom(specification + path); len(from) > 0 {
			out = append(out, fmt.Sprintf("%s: the API server fills it from %s: guard that too", e.Path, some(from)))
		}
	}
	return out
}

// filledFrom returns the fields of Pods from which the API server fills a field, or a part of it.
func filledFrom(field string) []string {
	at, err := fieldpath.ParsePattern(field)
	if err != nil {
		return nil
	}
	var out []string
	for _, d := range endpoint.DerivedOfPods() {
		if derived, err := fieldpath.ParsePattern(d.Field); err == nil && len(derived) >= len(at) && at.Covers(derived[:len(at)]) && !d.Shown && !slices.Contains(out, d.From) {
			out = append(out, d.From)
		}
	}
	return out
}

// templateWarning returns the warning for a set that names Pods and none of the workloads with templates, "" for none.
func templateWarning(compiled *schema.Schema, spec *v1alpha1.UncoveredPermissionSetSpec) string {
	names := func(group, resource string) bool {
		return slices.ContainsFunc(spec.Resources, func(r v1alpha1.ResourceRule) bool {
			return (slices.Contains(r.APIGroups, group) || slices.Contains(r.APIGroups, "*")) && (slices.Contains(r.Resources, resource) || slices.Contains(r.Resources, "*"))
		})
	}
	deployment, err := compiled.Kind(runtimeschema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	if err != nil || !names("", "pods") || names("apps", "deployments") {
		return ""
	}
	isInTemplates := false
	deployment.Walk(func(at fieldpath.Pattern, n *schema.Node) {
		if !strings.HasPrefix(at.String(), ".spec.template") {
			return
		}
		for _, text := range spec.UncoveredPermissions {
			v, err := verbs.Parse(text)
			isInTemplates = isInTemplates || err == nil && slices.ContainsFunc(n.Permissions(), func(p *schema.Permission) bool { return p.MayBe(v) })
		}
	})
	if !isInTemplates {
		return ""
	}
	return "it holds for Pods, and not for the templates that controllers make them from: name the workloads in spec.resources too (deployments.apps, jobs.batch, cronjobs.batch and the others), or write fragment: podSpec in place of resources"
}
