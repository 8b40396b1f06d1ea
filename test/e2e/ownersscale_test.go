//go:build integration

package e2e

import (
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fieldperm/fieldperm/test/corpus"
)

// rigs is a definition with replicas in a struct, next to a mode with a verb of its own. more is added to the entry of the verb of the
// replicas.
func rigs(more string) string {
	return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: rigs.owners.example.com\n  annotations:\n" +
		`    fieldperm.dev/permission-verbs: '{"v1":[{"path":".spec.scaling.mode","verb":"example.com/mode"},{"path":".spec.scaling.replicas","verb":"example.com/size"` + more + `}]}'` + "\n" +
		"spec:\n  group: owners.example.com\n  scope: Namespaced\n  names: {kind: Rig, plural: rigs}\n  versions:\n" +
		"  - name: v1\n    served: true\n    storage: true\n    subresources: {scale: {specReplicasPath: .spec.scaling.replicas, statusReplicasPath: .status.replicas}}\n" +
		"    schema: {openAPIV3Schema: {type: object, properties: {status: {type: object, properties: {replicas: {type: integer}}}, " +
		"spec: {type: object, properties: {color: {type: string}, scaling: {type: object, properties: {mode: {type: string}, replicas: {type: integer}}}}}}}}\n"
}

// scaleTo writes the replicas through the scale subresource.
func (o *thing) scaleTo(replicas string) request {
	return func(t *testing.T, as *corpus.Wire) *corpus.Answer {
		t.Helper()
		return o.patch(t, as, `{"spec":{"replicas":`+replicas+`}}`, "scale")
	}
}

// TestD8_C2_AScaleThatStaysChangesOwners: a write of the Scale that changes nothing removes the replicas from the manager that updated
// them. Another manager that applied the last other field of the struct then removes both.
func TestD8_C2_AScaleThatStaysChangesOwners(t *testing.T) {
	s := start(t)
	const group = "owners.example.com"
	both := []string{"rigs", "rigs/scale"}
	remove(t, s, "customresourcedefinition", "rigs."+group)
	for _, c := range []struct {
		name, more string
		verbs      []string
	}{
		{"without-barrier", "", []string{"get", "granular", "granular:example.com/mode", "granular:label(team)"}},
		{"behind-a-barrier", `,"excluded":true`, []string{"get", "update", "patch"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			thief, holder := "rigger-"+c.name, "sizer-"+c.name
			grant(t, s, thief, rule(group, both, c.verbs...))
			grant(t, s, holder, rule(group, both, append(c.verbs, "granular:example.com/size")...))
			apply(t, s, rigs(c.more))
			established(t, s, "rigs."+group)
			o := &thing{s, group + "/v1", "rigs", "Rig", c.name}
			eventually(t, func() *corpus.Answer {
				return o.apply(t, o.admin(t), "flux", `{"spec":{"scaling":{"mode":"a"}}}`)
			}, 201)
			expect(t, o.patch(t, o.admin(t), `{"metadata":{"labels":{"team":"t"}},"spec":{"scaling":{"replicas":3}}}`), 200)
			try := func(field string) func() *corpus.Answer {
				return func() *corpus.Answer {
					return send(t, wire(t, s, thief), http.MethodPatch, o.path(), merge, fields(t, `{"spec":{"scaling":{`+field+`}}}`), "dryRun=All")
				}
			}
			inForce(t, "the mode may be changed", try(`"mode":"b"`), 200)
			refusedFor(t, inForce(t, "the replicas may not be changed", try(`"replicas":4`), 403), "granular:example.com/size")
			victim := func(t *testing.T) *corpus.Answer {
				return o.apply(t, o.admin(t), "argocd", `{"metadata":{"labels":{"team":"t"}}}`)
			}
			expect(t, victim(t), 200)
			steal := &theft{
				first: func(t *testing.T, as *corpus.Wire) *corpus.Answer {
					return o.apply(t, as, "argocd", `{"metadata":{"labels":{"team":"t"}},"spec":{"scaling":{"mode":"b"}}}`)
				},
				steps: []request{o.scaleTo("3"), o.scaleTo("3")},
				needs: "granular:example.com/size", holder: holder, victim: victim,
				stays: func(t *testing.T) bool { return o.has(t, "spec", "scaling", "replicas") },
			}
			steal.fails(t, s, thief)
		})
	}
}

const threeReplicas = `"spec":{"replicas":3,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"a"}]}}}`

// setTime sets the time of the entry of the manager creator.
func setTime(object map[string]any, at any) {
	for _, e := range entries(object) {
		if entry := e.(map[string]any); entry["manager"] == "creator" {
			entry["time"] = at
		}
	}
}

// guardPolicyLabels makes labels a barrier on Deployments until the test ends.
func guardPolicyLabels(t *testing.T, o *thing, user string) {
	t.Helper()
	install(t, o.s)
	path := o.path()
	change := func() *corpus.Answer {
		return send(t, wire(t, o.s, user), http.MethodPatch, path, merge, fields(t, `{"metadata":{"labels":{"policy.example.com/x":"2"}}}`), "dryRun=All")
	}
	t.Cleanup(func() { inForce(t, "the label may be changed again", change, 200) })
	remove(t, o.s, "uncoveredpermissionset", "policy-labels")
	apply(t, o.s, uncoveredSet("policy-labels", "granular:label(policy.example.com)", "apps", "deployments"))
	inForce(t, "the label may not be changed", change, 403)
}

// TestD8_C2_AnEntryWithoutTimeIsLostToAScale: a Scale leaves two entries of the manager that updated the replicas, and the next write keeps
// the later one of them. If the time of the other entry counts as none, all fields of that entry lose their owner, and so do the labels.
func TestD8_C2_AnEntryWithoutTimeIsLostToAScale(t *testing.T) {
	s := start(t)
	group, both := "apps", []string{"deployments", "deployments/scale"}
	steal := func(t *testing.T, o *thing, needs, holder string, change func(object map[string]any)) *theft {
		t.Helper()
		victim := func(t *testing.T) *corpus.Answer {
			return o.apply(t, o.admin(t), "argocd", `{"metadata":{"annotations":{"k":"v"}}}`)
		}
		return &theft{
			first: func(t *testing.T, as *corpus.Wire) *corpus.Answer {
				o.name += "-again" // The first object cannot be used again: a Scale removed its owners.
				o.create(t, `{"metadata":{"labels":{"policy.example.com/x":"1"}},`+threeReplicas+`}`)
				expect(t, victim(t), 200)
				return o.apply(t, as, "argocd", `{"metadata":{"annotations":{"k":"v"},"labels":{"team.example.com/y":"y"}}}`)
			},
			steps: []request{func(t *testing.T, as *corpus.Wire) *corpus.Answer {
				return o.put(t, as, func(object map[string]any) {
					setTime(object, "1960-01-01T00:00:00Z")
					change(object)
				})
			}, o.scaleTo("3"), o.scaleTo("3")},
			needs: needs, holder: holder, victim: victim,
			stays: func(t *testing.T) bool { return o.has(t, "metadata", "labels", "policy.example.com/x") },
		}
	}
	t.Run("BesideTheGeneration", func(t *testing.T) {
		grant(t, s, "imager", rule(group, both, "get", "granular", "granular:label(team.example.com)", "granular:annotation(k)", "granular:image(a)", "granular:scale"))
		grant(t, s, "deployment-owner", rule(group, both, "get", "granular", "granular:*"))
		o := &thing{s, "apps/v1", "deployments", "Deployment", "aged-beside-generation"}
		steal(t, o, "granular:*", "deployment-owner", func(object map[string]any) {
			give(t, object, "creator", "f:metadata", "f:generation")
			containers, _, err := unstructured.NestedSlice(object, "spec", "template", "spec", "containers")
			must(t, err)
			containers[0].(map[string]any)["image"] = "b"
			must(t, unstructured.SetNestedSlice(object, containers, "spec", "template", "spec", "containers"))
		}).fails(t, s, "imager")
	})
	t.Run("BehindABarrier", func(t *testing.T) {
		grant(t, s, "age-updater", rule(group, both, "get", "update", "patch"))
		grant(t, s, "age-policy", rule(group, both, "get", "update", "patch", "granular:label(policy.example.com)"))
		o := &thing{s, "apps/v1", "deployments", "Deployment", "aged-behind-barrier"}
		o.create(t, `{"metadata":{"labels":{"policy.example.com/x":"1"}},`+threeReplicas+`}`)
		guardPolicyLabels(t, o, "age-updater")
		steal(t, o, "granular:label(policy.example.com)", "age-policy", func(object map[string]any) {
			must(t, unstructured.SetNestedField(object, "1", "metadata", "annotations", "mine"))
		}).fails(t, s, "age-updater")
	})
}

// TestD8_TheGenerationExplainsNoTime: the API server changes the generation without any manager. So a manager that gains the generation
// gets no new time by that.
func TestD8_TheGenerationExplainsNoTime(t *testing.T) {
	s := start(t)
	grant(t, s, "pauser", rule("apps", []string{"deployments"}, "get", "granular", "granular:suspension"))
	grant(t, s, "pause-owner", rule("apps", []string{"deployments"}, "get", "granular", "granular:*"))
	for name, c := range map[string]struct {
		at    any
		needs string
	}{
		"before-1970": {"1960-01-01T00:00:00Z", "granular:*"},
		"gone":        {nil, "granular:*"},
		"later":       {"2099-01-01T00:00:00Z", "granular:*"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &thing{s, "apps/v1", "deployments", "Deployment", "time-" + name}
			o.create(t, `{`+threeReplicas+`}`)
			pause := func(user string, at any) *corpus.Answer {
				return o.put(t, wire(t, s, user), func(object map[string]any) {
					if at != "" {
						setTime(object, at)
						give(t, object, "creator", "f:metadata", "f:generation")
					}
					paused, _, err := unstructured.NestedBool(object, "spec", "paused")
					must(t, err)
					must(t, unstructured.SetNestedField(object, !paused, "spec", "paused"))
				})
			}
			refusedFor(t, pause("pauser", c.at), c.needs)
			expect(t, pause("pause-owner", c.at), 200)
			expect(t, pause("pauser", ""), 200)
		})
	}
}

// TestD8_C2_AfterARepeatedScaleOthersMayWrite: a Scale without a change leaves two entries of one manager. The API server merges them with
// the next write of the object, and the user of that write needs no verb for it.
func TestD8_C2_AfterARepeatedScaleOthersMayWrite(t *testing.T) {
	s := start(t)
	o := &thing{s, "apps/v1", "deployments", "Deployment", "scaled"}
	grant(t, s, "scaler", rule("apps", []string{"deployments/scale"}, "get", "granular", "granular:scale"))
	grant(t, s, "scaled-labeler", rule("apps", []string{"deployments"}, "get", "granular", "granular:labels"))
	grant(t, s, "scaled-updater", rule("apps", []string{"deployments"}, "get", "update", "patch"))
	scaled := func(t *testing.T, name string) {
		t.Helper()
		o.name = name
		o.create(t, `{"metadata":{"labels":{"policy.example.com/x":"1"}},`+threeReplicas+`}`)
		expect(t, o.scaleTo("3")(t, wire(t, s, "scaler")), 200)
		if n := len(entries(o.read(t))); n != 2 {
			t.Fatalf("%d entries, want 2 of the manager creator", n)
		}
	}
	t.Run("Granular", func(t *testing.T) {
		scaled(t, "scaled-labels")
		expect(t, o.patch(t, wire(t, s, "scaled-labeler"), `{"metadata":{"labels":{"x":"1"}}}`), 200)
	})
	t.Run("BehindABarrier", func(t *testing.T) {
		scaled(t, "scaled-guarded")
		guardPolicyLabels(t, o, "scaled-updater")
		expect(t, o.patch(t, wire(t, s, "scaled-updater"), `{"spec":{"paused":true}}`), 200)
	})
}
