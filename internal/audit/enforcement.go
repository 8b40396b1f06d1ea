package audit

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/verbs"
)

// Document is an object of fieldperm in a cluster.
type Document struct {
	Ref
	Generation int64
	Status     v1alpha1.Status
}

// Check applies the rules about the conditions of an object.
func (d *Document) Check(report func(Finding)) {
	find := func(rule string, level Level, message, cure string) {
		report(Finding{Rule: rule, Level: level, Object: d.Ref, Path: "status.conditions", Message: message, Cure: cure})
	}
	compiled, enforced := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionCompiled), meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionEnforced)
	isOld := func(c *metav1.Condition) bool { return c == nil || c.ObservedGeneration != d.Generation }
	if !isOld(compiled) && compiled.Status == metav1.ConditionFalse {
		find(notCompiled, Error, "the object has faults: "+shorten(compiled.Message), "correct the object; its condition Compiled has all faults")
		return
	}
	switch {
	case isOld(enforced):
		find(barrierNotEnforced, Warning, "fieldperm-webhook has not said whether the present generation of the object is enforced", "run fieldperm-webhook, and look at its log")
	case enforced.Status == metav1.ConditionTrue:
	case enforced.Reason == v1alpha1.ReasonNotDenying:
		find(barrierNotEnforced, Note, "the set is tried and refuses nothing", "set validationActions to [Deny] to refuse writes")
	case enforced.Status == metav1.ConditionFalse:
		find(barrierNotEnforced, Error, fmt.Sprintf("the object is not enforced (%s): %s", enforced.Reason, shorten(enforced.Message)), "do what the condition Enforced says")
	default:
		find(barrierNotEnforced, Warning, fmt.Sprintf("it is not known whether the object is enforced (%s): %s", enforced.Reason, shorten(enforced.Message)), "do what the condition Enforced says")
	}
}

// shorten keeps messages of conditions readable.
func shorten(text string) string {
	const most = 300
	text = strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "?")
	if text = strings.TrimSuffix(text, "."); len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + " …"
}

// Holder is a subject that kube-apiserver lets in only if fieldperm is enforced: it holds the marker on a resource, and RBAC grants it no
// generic permission there.
type Holder struct {
	User     string
	Groups   []string
	Resource Resource
	// Version is one in which the resource is known. kube-apiserver does not ask fieldperm about all versions together.
	Version string
	// Namespace and Name are those of a request that the marker covers.
	Namespace, Name string

	role *keptRole
	path string
}

// Split returns the resource and the subresource.
func (h *Holder) Split() (resource, subresource string) { return h.Resource.split() }

// Holders returns some subjects with the marker, after Run. most bounds their number.
func (s *Scan) Holders(most int) []Holder {
	var out []Holder
	j := newJoint(s)
	for _, of := range j.subjects {
		h := Holder{}
		switch {
		case of.kind == groupKind && (of.name == user.AllUnauthenticated || of.name == user.SystemPrivilegedGroup):
			continue
		case of.kind == groupKind:
			h.User, h.Groups = "fieldperm:audit", []string{of.name}
		case of.kind == userKind:
			h.User = of.name
		default:
			h.User = serviceaccount.MakeUsername(of.namespace, of.name)
		}
		for _, group := range of.groups() {
			h.Groups = append(h.Groups, group.name)
		}
		if at := j.marked(of, h); at != nil {
			out = append(out, *at)
		}
		if len(out) == most {
			break
		}
	}
	return out
}

// marked returns the subject with a resource on which it holds the marker with get, without the generic permission, nil if there is none.
func (j *joint) marked(of subject, h Holder) *Holder {
	held := j.held(of)
	for i := range j.rights[of] {
		r := &j.rights[of][i]
		if j.Namespace != "" && r.scope != j.Namespace {
			continue
		}
		for k := range r.role.rules {
			rule := &r.role.rules[k]
			for at, text := range rule.verbs {
				if text != verbs.Marker || wild(rule) {
					continue
				}
				for _, t := range j.opened(rule, r.scope) {
					resource, subresource := t.split()
					if t.wildcard() || !j.Known.isOwn(t.Group, resource) || !endpoint.TakesMarker(t.Group, resource, subresource) || covered(held, t, generic) != none || covered(held, t, gets) != full || j.Known.version(t.Group, resource) == "" {
						continue
					}
					h.Resource, h.Version, h.Namespace, h.role, h.path = t.Resource, j.Known.version(t.Group, resource), r.scope, r.role, verbPath(rule.index, at)
					if len(rule.names) > 0 {
						h.Name = rule.names[0]
					}
					return &h
				}
			}
		}
	}
	return nil
}

// isOwn reports whether kube-apiserver itself serves a resource, in contrast to an aggregated API server.
func (k *Known) isOwn(group, resource string) bool {
	return endpoint.BuiltIn(group, resource) || slices.ContainsFunc(k.kinds[runtimeschema.GroupResource{Group: group, Resource: resource}], func(gvk runtimeschema.GroupVersionKind) bool {
		return k.defined[gvk]
	})
}

// version returns the newest version in which a resource is known.
func (k *Known) version(group, resource string) string {
	newest := ""
	for _, gvk := range k.kinds[runtimeschema.GroupResource{Group: group, Resource: resource}] {
		if newest == "" || version.CompareKubeAwareVersionStrings(gvk.Version, newest) > 0 {
			newest = gvk.Version
		}
	}
	return newest
}

// Refused returns the finding that kube-apiserver does not let a holder of the marker in. The reason is that of kube-apiserver.
func (h *Holder) Refused(reason string) Finding {
	why := "kube-apiserver does not ask fieldperm, or fieldperm does not find the marker"
	if strings.HasPrefix(reason, verbs.Prefix) {
		why = shorten(reason)
	}
	return h.role.at(Finding{
		Rule: markerNotEnforced, Level: Error, Object: h.role.Ref, Path: h.path, About: verbs.Marker,
		Message: fmt.Sprintf("kube-apiserver does not let %q update %s, although it holds the marker: %s", h.User, h.Resource, why),
		Cure:    "look at /readyz/enforcement of fieldperm-webhook and at the authorizers of kube-apiserver",
	})
}
