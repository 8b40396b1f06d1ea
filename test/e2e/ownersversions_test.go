//go:build integration

package e2e

import (
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fieldperm/fieldperm/test/corpus"
)

// TestD8_C2_AnItemIsOwnedByItsKeys: the API server does not keep an item if no manager owns its key, whichever manager owns the other
// fields. So the loss of the key is charged as the loss of the item with the guarded fields in it, and no manager gains such an item
// without a charge.
func TestD8_C2_AnItemIsOwnedByItsKeys(t *testing.T) {
	s := start(t)
	install(t, s)
	grant(t, s, "deployer", rule("apps", []string{"deployments"}, "get", "update", "patch"))
	o := &thing{s, "apps/v1", "deployments", "Deployment", "kept-item"}
	containers := func(items string) string {
		return `{"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[` + items + `]}}}}`
	}
	const web = `{"name":"web","image":"web"}`
	victim := func(t *testing.T) *corpus.Answer { return o.apply(t, o.admin(t), "argocd", containers(web)) }
	reset := func(t *testing.T, name string) {
		t.Helper()
		o.name = name
		o.create(t, containers(web+`,{"name":"side","image":"side","securityContext":{"runAsNonRoot":true}}`))
		expect(t, victim(t), 200)
	}
	key := func(t *testing.T, thief *corpus.Wire) *corpus.Answer {
		return o.put(t, thief, func(object map[string]any) {
			take(t, object, "creator", "f:spec", "f:template", "f:spec", "f:containers", `k:{"name":"side"}`, "f:name")
		})
	}
	field := func(t *testing.T, thief *corpus.Wire) *corpus.Answer {
		return o.apply(t, thief, "argocd", containers(web+`,{"name":"side","stdin":true}`))
	}
	steal := &theft{
		needs: "granular:securityContext", victim: victim,
		stays: func(t *testing.T) bool {
			items, _, err := unstructured.NestedSlice(o.read(t), "spec", "template", "spec", "containers")
			must(t, err)
			return len(items) == 2 && items[1].(map[string]any)["securityContext"] != nil
		},
	}
	reset(t, "kept-item")
	remove(t, s, "uncoveredpermissionset", "kept-item")
	apply(t, s, uncoveredSet("kept-item", "granular:securityContext", "apps", "deployments"))
	inForce(t, "the security context may not be removed", func() *corpus.Answer {
		return send(t, wire(t, s, "deployer"), http.MethodPatch, o.path(), "application/strategic-merge-patch+json",
			fields(t, `{"spec":{"template":{"spec":{"containers":[{"name":"side","securityContext":null}]}}}}`), "dryRun=All")
	}, 403)
	t.Run("TheKey", func(t *testing.T) {
		steal.steps = []request{key, field}
		steal.fails(t, s, "deployer")
	})
	t.Run("AFieldOfAnItemWithoutKey", func(t *testing.T) {
		reset(t, "kept-keyless-item")
		expect(t, key(t, o.admin(t)), 200)
		steal.steps = []request{field}
		steal.fails(t, s, "deployer")
	})
}

// autoscaler is written in the first version, which has other names for the metrics of the second version.
func autoscaler(t *testing.T, name string) *thing {
	t.Helper()
	return &thing{start(t), "autoscaling/v1", "horizontalpodautoscalers", "HorizontalPodAutoscaler", name}
}

const (
	scaled = `"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"x"},"maxReplicas":3`
	// inAnnotation is the annotation in which the first version keeps metrics for which it has no field. Memory is one of them.
	inAnnotation = "autoscaling.alpha.kubernetes.io/metrics"
	memory       = `"` + inAnnotation + `":"[{\"type\":\"Resource\",\"resource\":{\"name\":\"memory\",\"targetAverageUtilization\":60}}]"`
)

// guardMetrics makes metrics a barrier until the test ends.
func guardMetrics(t *testing.T, o *thing, user string) {
	t.Helper()
	remove(t, o.s, "uncoveredpermissionset", "metrics")
	apply(t, o.s, uncoveredSet("metrics", "granular:metrics", "autoscaling", "horizontalpodautoscalers"))
	enforced(t, o.s, "uncoveredpermissionset", "metrics", "True Enforced")
	refusedFor(t, o.in("autoscaling/v2").patch(t, wire(t, o.s, user), `{"spec":{"metrics":[]}}`), "granular:metrics")
}

// TestD8_C2_OwnersOfAFieldThatAnotherVersionRenames: a field behind a barrier has an owner in another version. A change of its neighbor
// does not remove this owner.
func TestD8_C2_OwnersOfAFieldThatAnotherVersionRenames(t *testing.T) {
	o := autoscaler(t, "kept-owner")
	install(t, o.s)
	group, resource := "autoscaling", []string{"horizontalpodautoscalers"}
	grant(t, o.s, "bounder", rule(group, resource, "get", "granular", "granular:scaleBounds"))
	grant(t, o.s, "bound-updater", rule(group, resource, "get", "update", "patch"))
	remove(t, o.s, o.resource, o.name)
	expect(t, o.apply(t, o.admin(t), "security", `{"spec":{`+scaled+`,"minReplicas":1,"targetCPUUtilizationPercentage":50}}`), 201)
	guardMetrics(t, o, "bound-updater")

	strip := func(as *corpus.Wire) *corpus.Answer {
		return o.in("autoscaling/v2").put(t, as, func(object map[string]any) {
			must(t, unstructured.SetNestedField(object, float64(2), "spec", "minReplicas"))
			take(t, object, "security", "f:spec", "f:targetCPUUtilizationPercentage")
		})
	}
	overwrite := func() *corpus.Answer {
		return send(t, o.admin(t), http.MethodPatch, o.path(), "application/apply-patch+yaml", o.document(t, `{"spec":{"targetCPUUtilizationPercentage":70}}`), "fieldManager=other")
	}
	// A user with granular verbs is refused with the barrier and without, and the API server returns one of the two messages.
	for user, names := range map[string]string{"bounder": `"security" in autoscaling/v1`, "bound-updater": "granular:metrics"} {
		refusedFor(t, strip(wire(t, o.s, user)), names)
		expect(t, overwrite(), http.StatusConflict)
		// The change of the neighbor alone is allowed.
		expect(t, send(t, wire(t, o.s, user), http.MethodPatch, o.in("autoscaling/v2").path(), merge, fields(t, `{"spec":{"minReplicas":2}}`), "dryRun=All"), 200)
	}
	expect(t, strip(o.admin(t)), 200)
	expect(t, overwrite(), 200)
}

// TestD8_OwnersOfAnnotationsThatAreFieldsInAnotherVersion: the first version keeps in annotations the values for which only the second
// version has fields. So the owner of such an annotation owns the field.
func TestD8_OwnersOfAnnotationsThatAreFieldsInAnotherVersion(t *testing.T) {
	o := autoscaler(t, "kept-metric")
	install(t, o.s)
	grant(t, o.s, "annotator", rule("autoscaling", []string{"horizontalpodautoscalers"}, "get", "granular", "granular:annotations"))
	v2 := o.in("autoscaling/v2")
	annotation := []string{"f:metadata", "f:annotations", "f:" + inAnnotation}
	victim := func(t *testing.T) *corpus.Answer { return o.apply(t, o.admin(t), "argocd", `{"spec":{`+scaled+`}}`) }
	steal := &theft{
		steps: []request{
			func(t *testing.T, thief *corpus.Wire) *corpus.Answer {
				return v2.put(t, thief, func(object map[string]any) {
					must(t, unstructured.SetNestedField(object, "2", "metadata", "annotations", "k"))
					take(t, object, "creator", annotation...)
					give(t, object, "argocd", annotation...)
				})
			},
			// An entry of the second version keeps the field alive.
			func(t *testing.T, thief *corpus.Wire) *corpus.Answer {
				return v2.put(t, thief, func(object map[string]any) {
					var left []any
					for _, e := range entries(object) {
						if e.(map[string]any)["manager"] != "putter" {
							left = append(left, e)
						}
					}
					object["metadata"].(map[string]any)["managedFields"] = left
				})
			},
		},
		victim: victim,
		stays: func(t *testing.T) bool {
			metrics, _, err := unstructured.NestedSlice(v2.read(t), "spec", "metrics")
			must(t, err)
			for _, m := range metrics {
				if name, _, _ := unstructured.NestedString(m.(map[string]any), "resource", "name"); name == "memory" {
					return true
				}
			}
			return false
		},
	}
	reset := func(t *testing.T, name string) {
		t.Helper()
		o.name, v2.name = name, name
		o.create(t, `{"metadata":{"annotations":{"k":"1",`+memory+`}},"spec":{`+scaled+`,"minReplicas":1,"targetCPUUtilizationPercentage":50}}`)
		expect(t, victim(t), 200)
		if !steal.stays(t) {
			t.Fatal("the metric is not there")
		}
	}
	t.Run("WithoutBarrier", func(t *testing.T) {
		reset(t, "kept-metric")
		refusedFor(t, v2.patch(t, wire(t, o.s, "annotator"), `{"spec":{"metrics":[]}}`), "granular:*")
		steal.needs = "granular:*"
		steal.fails(t, o.s, "annotator")
	})
	t.Run("BehindABarrier", func(t *testing.T) {
		grant(t, o.s, "metric-updater", rule("autoscaling", []string{"horizontalpodautoscalers"}, "get", "update", "patch"))
		reset(t, "kept-guarded-metric")
		guardMetrics(t, o, "metric-updater")
		steal.needs = "granular:metrics"
		steal.fails(t, o.s, "metric-updater")
	})
}
