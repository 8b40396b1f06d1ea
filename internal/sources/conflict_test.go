package sources

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema"
)

const takesLabels = "{path: '.metadata.labels[*]', verb: example.com/label, parameterizedBy: labelKey}"

func namespaces(generation int64, entries ...string) *unstructured.Unstructured {
	return inCluster("PermissionSchema", "namespaces", "n", generation, "{kind: Namespace, permissions: ["+strings.Join(entries, ", ")+"]}")
}

func setOnNamespaces(generation int64, verb string) *unstructured.Unstructured {
	return set("s", generation, `{uncoveredPermissions: ["`+verb+`"], resources: [{apiGroups: [""], resources: [namespaces]}]}`)
}

func kindNamespace() runtimeschema.GroupVersionKind {
	return runtimeschema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
}

// TestC2_ASetHoldsBesideAPermissionSchemaMadeWithIt: admission refuses the object that is created second. If both are created at
// the same time, the PermissionSchema that removes the verb of a barrier retreats, in whichever order they are seen.
func TestC2_ASetHoldsBesideAPermissionSchemaMadeWithIt(t *testing.T) {
	labels := setOnNamespaces(1, "granular:label(pod-security.kubernetes.io)")
	other := deployments("d", 1, pausedIsBarred)
	for name, first := range map[string][]*unstructured.Unstructured{"at once": nil, "schema first": {namespaces(1, takesLabels)}, "set first": {labels}} {
		t.Run(name, func(t *testing.T) {
			c := &cluster{}
			l := c.live(t)
			if first != nil {
				c.is(t, l, first...)
			}
			c.is(t, l, namespaces(1, takesLabels), labels, other)
			if s := stateOf(t, l, "set"); len(s.Faults) > 0 || len(s.GuardedFields) != 1 {
				t.Errorf("the set: %+v", s)
			}
			s := stateOf(t, l, "namespaces")
			const want = `PermissionSchema namespaces:/spec/permissions: takes verb "granular:label(pod-security.kubernetes.io)" away from "namespaces", where UncoveredPermissionSet set has it as a barrier: `
			if len(s.Faults) != 1 || !strings.HasPrefix(s.Faults[0].Error(), want) || len(l.Faults()) != 1 || len(s.Documents.Permissions) > 0 {
				t.Errorf("the PermissionSchema: %+v, faults %v", s, l.Faults())
			}
			if _, err := l.Schema().Kind(kindNamespace()); err != nil || len(l.Unknown()) > 0 {
				t.Errorf("nobody may write the kind: %v, unknown %v", err, l.Unknown())
			}
			if s := stateOf(t, l, "deployments"); len(s.Faults) > 0 || barred(t, l) == "" {
				t.Errorf("another PermissionSchema: %+v", s)
			}
			// Without the set, the PermissionSchema is in force and no longer faulty.
			c.is(t, l, namespaces(1, takesLabels), other)
			if s := stateOf(t, l, "namespaces"); len(s.Faults) > 0 || len(l.Faults()) > 0 || len(s.Documents.Permissions) != 1 {
				t.Errorf("without the set: %+v, faults %v", s, l.Faults())
			}
		})
	}
}

// TestC2_ASetHoldsBesideAFragmentMadeWithIt: a document about a fragment takes verbs away from every kind that contains it.
func TestC2_ASetHoldsBesideAFragmentMadeWithIt(t *testing.T) {
	c := &cluster{}
	l := c.live(t)
	fragment := inCluster("PermissionSchema", "fragment", "u", 1, `{fragment: metadata, permissions: [{path: '.labels[*]', verb: example.com/l, parameterizedBy: labelKey}]}`)
	c.is(t, l, fragment, setOnNamespaces(1, "granular:label(pod-security.kubernetes.io)"))
	if s := stateOf(t, l, "set"); len(s.Faults) > 0 || len(s.GuardedFields) != 1 {
		t.Errorf("the set: %+v", s)
	}
	if s := stateOf(t, l, "fragment"); len(s.Faults) != 1 || len(s.Documents.Permissions) > 0 {
		t.Errorf("the PermissionSchema: %+v", s)
	}
}

// TestC2_AFragmentThatDoesNotDecodeFailsItsKinds, because its barriers are not known. A name that is no fragment may be any.
func TestC2_AFragmentThatDoesNotDecodeFailsItsKinds(t *testing.T) {
	for fragment, isNamespaceToo := range map[string]bool{"podSpec": false, "podSpecs": true} {
		c := &cluster{}
		l := c.live(t)
		c.is(t, l, inCluster("PermissionSchema", "fragment", "u", 1, `{fragment: `+fragment+`, permissions: [{path: .hostNetwork, verb: example.com/y, excluded: true}, {path: .x, include: podSpec}]}`))
		if _, err := l.Schema().Kind(kindDeployment()); err == nil || !l.Unknown()[kindDeployment().GroupKind()] {
			t.Errorf("%s: Deployments compile without a barrier that is not known: unknown %v", fragment, l.Unknown())
		}
		if _, err := l.Schema().Kind(kindNamespace()); (err != nil) != isNamespaceToo {
			t.Errorf("%s: Namespaces: %v", fragment, err)
		}
	}
}

// TestC2_ASourceInConflictKeepsItsBarriers: barriers stay in force. If they remove the verb too, all writes to the kind are refused.
func TestC2_ASourceInConflictKeepsItsBarriers(t *testing.T) {
	c := &cluster{}
	l := c.live(t)
	labels := setOnNamespaces(1, "granular:label(pod-security.kubernetes.io)")
	c.is(t, l, namespaces(1, takesLabels, "{path: .spec, verb: example.com/spec, excluded: true}"), labels)
	k, err := l.Schema().Kind(kindNamespace())
	if err != nil || !slices.ContainsFunc(k.Way(".spec"), func(n *schema.Node) bool { return slices.ContainsFunc(n.Permissions(), (*schema.Permission).MayBar) }) || len(stateOf(t, l, "set").GuardedFields) != 1 || len(stateOf(t, l, "namespaces").Faults) != 1 {
		t.Errorf("got %v, %+v", err, l.Objects())
	}
	c.is(t, l, namespaces(2, strings.Replace(takesLabels, "}", ", excluded: true}", 1)), labels)
	if _, err := l.Schema().Kind(kindNamespace()); err == nil || !l.Unknown()[kindNamespace().GroupKind()] {
		t.Errorf("one of two barriers is in force: unknown %v", l.Unknown())
	}
	if _, err := l.Schema().Kind(kindDeployment()); err != nil || len(l.Unknown()) != 1 {
		t.Errorf("another kind: %v, unknown %v", err, l.Unknown())
	}
}

// TestC2_AFaultySetDisplacesNoPermissionSchema that did not cause the set's fault.
func TestC2_AFaultySetDisplacesNoPermissionSchema(t *testing.T) {
	c := &cluster{}
	l := c.live(t)
	for i, verb := range []string{"granular:labelz", "granular:Label"} {
		// Admission accepts this set after the PermissionSchema, because other kinds have its verb.
		wide := inCluster("UncoveredPermissionSet", "wide", "w", 1, `{uncoveredPermissions: ["granular:label(pod-security.kubernetes.io)"]}`)
		c.is(t, l, namespaces(1, takesLabels), wide, setOnNamespaces(int64(i+1), verb))
		if s := stateOf(t, l, "namespaces"); len(s.Faults) > 0 || len(s.Documents.Permissions) != 1 || len(stateOf(t, l, "set").Faults) == 0 {
			t.Errorf("%s: %+v", verb, l.Objects())
		}
	}
}
