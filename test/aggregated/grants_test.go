//go:build integration

package aggregated

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/fieldperm/fieldperm/test/corpus"
)

const one = "kegs/default/one"

// keg returns a Keg in a version.
func keg(version, name, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"brewery.example.com/%s","kind":"Keg","metadata":{"name":%q},"spec":%s}`, version, name, spec)
}

// reset makes the object of the tests what it was at the beginning.
func (p *plane) reset(t *testing.T) {
	t.Helper()
	masters := p.wire(t, "admin", "system:masters")
	body := keg("v1", "one", `{"beer":"ale","taps":1,"prices":{"pint":{"cents":500},"half":{"cents":300}},"note":"old"}`)
	if answer := send(t, masters, http.MethodPut, kegs+"/one", "application/json", body); answer.Code != http.StatusCreated {
		expect(t, answer, http.StatusOK)
	}
	if answer := send(t, masters, http.MethodPut, recipes+"/ale", "application/json", `{"apiVersion":"brewery.example.com/v1","kind":"Formula","metadata":{"name":"ale"},"spec":{"hops":"cascade","secret":"salt"}}`); answer.Code != http.StatusCreated {
		expect(t, answer, http.StatusOK)
	}
	p.holds(t, one, `"ale"`, "spec", "beer")
}

// TestAggregated has all that one running server shows.
func TestAggregated(t *testing.T) {
	p := start(t, true)
	p.await(t)
	run := func(name string, f func(*testing.T, *plane)) {
		t.Run(name, func(t *testing.T) {
			p.reset(t)
			f(t, p)
		})
	}
	run("C1_AVerbChangesItsFieldAndNoOther", eachRequest)
	run("C1_AMarkerAloneChangesNothing", markerAlone)
	run("C1_UpdateIsNotHindered", updater)
	run("C1_OneSizeOfAMap", parameter)
	run("C1_TheStatus", ofStatus)
	run("C2_ABarrierHoldsForUpdate", barrier)
	run("C2_ABarrierOnValues", values)
	run("C2_ABarrierHoldsThroughTheScale", throughScale)
	run("C3_AVersionThatLacksAField", hidden)
	run("ExplainAndReviewKnowTheKinds", asked)
	run("A5_AServerThatAsksNoWebhooks", carelessServers)
	run("W2_BarriersHoldAfterAnOutage", outage)
}

// eachRequest: a user with one verb changes that field through both versions, by each kind of request, and no other.
func eachRequest(t *testing.T, p *plane) {
	brewer := p.grant(t, "brewer", []string{"kegs"}, "granular", "granular:creation", "granular:brewery.example.com/beer")
	for _, version := range []string{"v1", "v1beta1"} {
		for way, send := range ways(version) {
			t.Run(version+"/"+way, func(t *testing.T) {
				p.reset(t)
				expect(t, send(t, brewer, `{"note":"new"}`), http.StatusForbidden, "may not change .spec.note")
				expect(t, send(t, brewer, `{"beer":"stout","note":"new"}`), http.StatusForbidden, "may not change .spec.note")
				p.holds(t, one, `"old"`, "spec", "note")
				p.holds(t, one, `"ale"`, "spec", "beer")
				expect(t, send(t, brewer, `{"beer":"stout"}`), http.StatusOK)
				p.holds(t, one, `"stout"`, "spec", "beer")
				p.holds(t, one, `"old"`, "spec", "note")
				p.holds(t, one, `1`, "spec", "taps")
			})
		}
	}
	taster := p.grant(t, "taster", []string{"kegs"}, "granular", "granular:brewery.example.com/beer")
	for way, create := range map[string]func(w *corpus.Wire, name, spec string) *corpus.Answer{
		"POST": func(w *corpus.Wire, name, spec string) *corpus.Answer {
			return send(t, w, http.MethodPost, kegs, "application/json", keg("v1", name, spec), "dryRun=All")
		},
		"PUT": func(w *corpus.Wire, name, spec string) *corpus.Answer {
			return send(t, w, http.MethodPut, kegs+"/"+name, "application/json", keg("v1", name, spec), "dryRun=All")
		},
		"apply": func(w *corpus.Wire, name, spec string) *corpus.Answer {
			return send(t, w, http.MethodPatch, kegs+"/"+name, "application/apply-patch+yaml", keg("v1", name, spec), "fieldManager=tester", "dryRun=All")
		},
	} {
		t.Run("create by "+way, func(t *testing.T) {
			expect(t, create(brewer, "two", `{"beer":"ale","note":"mine"}`), http.StatusForbidden, "may not change .spec.note")
			expect(t, create(taster, "two", `{"beer":"ale"}`), http.StatusForbidden, "may not create it: needs any one of granular:creation, granular:*")
			expect(t, create(brewer, "two", `{"beer":"ale"}`), http.StatusCreated)
		})
	}
	expect(t, send(t, brewer, http.MethodPost, kegs, "application/json", keg("v1", "two", `{"beer":"ale"}`)), http.StatusCreated)
	p.holds(t, "kegs/default/two", `"ale"`, "spec", "beer")
	p.holds(t, "kegs/default/two", "", "spec", "note")
}

// ways are the requests that change an existing Keg.
func ways(version string) map[string]func(*testing.T, *corpus.Wire, string) *corpus.Answer {
	at := "/apis/brewery.example.com/" + version + "/namespaces/default/kegs/one"
	return map[string]func(*testing.T, *corpus.Wire, string) *corpus.Answer{
		"merge": func(t *testing.T, w *corpus.Wire, spec string) *corpus.Answer {
			return patch(t, w, at, `{"spec":`+spec+`}`)
		},
		"strategic": func(t *testing.T, w *corpus.Wire, spec string) *corpus.Answer {
			return send(t, w, http.MethodPatch, at, "application/strategic-merge-patch+json", `{"spec":`+spec+`}`)
		},
		"apply": func(t *testing.T, w *corpus.Wire, spec string) *corpus.Answer {
			return send(t, w, http.MethodPatch, at, "application/apply-patch+yaml", keg(version, "one", spec), "fieldManager=tester", "force=true")
		},
		"PUT": func(t *testing.T, w *corpus.Wire, spec string) *corpus.Answer {
			object := decode(t, expectOK(t, send(t, w, http.MethodGet, at, "", "")))
			for field, value := range decode(t, []byte(spec)) {
				object["spec"].(map[string]any)[field] = value
			}
			return send(t, w, http.MethodPut, at, "application/json", encode(t, object))
		},
	}
}

func markerAlone(t *testing.T, p *plane) {
	marked := p.grant(t, "marked", []string{"kegs", "kegs/status", "kegs/scale", "recipes"}, "granular")
	before := p.stored(t, one)
	for path, body := range map[string]string{
		kegs + "/one":        `{"spec":{"beer":"stout"}}`,
		beta + "/one":        `{"spec":{"beer":"stout"}}`,
		kegs + "/one/status": `{"status":{"level":1}}`,
		kegs + "/one/scale":  `{"spec":{"replicas":5}}`,
		recipes + "/ale":     `{"spec":{"hops":"fuggle"}}`,
	} {
		expect(t, patch(t, marked, path, body), http.StatusForbidden, "may not change")
	}
	expect(t, patch(t, marked, kegs+"/one", `{"metadata":{"labels":{"a":"b"}}}`), http.StatusForbidden, "may not change .metadata.labels")
	expect(t, patch(t, marked, kegs+"/one", `{"metadata":{"managedFields":[{}]}}`), http.StatusForbidden)
	expect(t, send(t, marked, http.MethodPost, kegs, "application/json", keg("v1", "mine", `{}`)), http.StatusForbidden)
	expect(t, send(t, marked, http.MethodDelete, kegs+"/one", "", ""), http.StatusForbidden)
	if after := p.stored(t, one); after != before {
		t.Errorf("etcd holds %s, before %s", after, before)
	}
}

func updater(t *testing.T, p *plane) {
	updater := p.grant(t, "updater", []string{"kegs", "kegs/status", "kegs/scale"}, "create", "update", "patch")
	for version := range map[string]bool{"v1": true, "v1beta1": true} {
		for way, send := range ways(version) {
			expect(t, send(t, updater, fmt.Sprintf(`{"note":%q}`, version+way)), http.StatusOK)
			p.holds(t, one, fmt.Sprintf("%q", version+way), "spec", "note")
		}
	}
	expect(t, patch(t, updater, kegs+"/one/status", `{"status":{"level":7}}`), http.StatusOK)
	p.holds(t, one, "7", "status", "level")
	expect(t, patch(t, updater, kegs+"/one/scale", `{"spec":{"replicas":3}}`), http.StatusOK)
	p.holds(t, one, "3", "spec", "taps")
	expect(t, send(t, updater, http.MethodPost, beta, "application/json", keg("v1beta1", "three", `{"note":"x"}`)), http.StatusCreated)
}

func parameter(t *testing.T, p *plane) {
	seller := p.grant(t, "seller", []string{"kegs"}, "granular", "granular:brewery.example.com/price(pint)")
	expect(t, patch(t, seller, kegs+"/one", `{"spec":{"prices":{"pint":{"cents":600}}}}`), http.StatusOK)
	p.holds(t, one, `{"half":{"cents":300},"pint":{"cents":600}}`, "spec", "prices")
	expect(t, patch(t, seller, beta+"/one", `{"spec":{"prices":{"half":{"cents":600}}}}`), http.StatusForbidden, "granular:brewery.example.com/price(half)")
	p.holds(t, one, `{"half":{"cents":300},"pint":{"cents":600}}`, "spec", "prices")
}

func ofStatus(t *testing.T, p *plane) {
	sensor := p.grant(t, "sensor", []string{"kegs/status"}, "granular", "granular:brewery.example.com/level")
	for i, at := range []string{kegs, beta} {
		expect(t, patch(t, sensor, at+"/one/status", fmt.Sprintf(`{"status":{"level":%d}}`, i+50)), http.StatusOK)
		p.holds(t, one, fmt.Sprint(i+50), "status", "level")
		expect(t, patch(t, sensor, at+"/one/status", `{"status":{"sealed":"red"}}`), http.StatusForbidden, "may not change .status.sealed")
		expect(t, patch(t, sensor, at+"/one", `{"spec":{"beer":"stout"}}`), http.StatusForbidden)
	}
	p.holds(t, one, "", "status", "sealed")
	// The server ignores the spec of a write to the status.
	patch(t, sensor, kegs+"/one/status", `{"spec":{"beer":"stout"},"status":{"level":60}}`)
	p.holds(t, one, `"ale"`, "spec", "beer")
}

// barrier: only the verb of the barrier changes the field, through every version and request.
func barrier(t *testing.T, p *plane) {
	updater := p.grant(t, "barred", []string{"kegs", "kegs/status", "kegs/scale"}, "create", "update", "patch", "granular", "granular:*")
	recaller := p.grant(t, "recaller", []string{"kegs"}, "granular", "granular:brewery.example.com/recall")
	for _, version := range []string{"v1", "v1beta1"} {
		for way, send := range ways(version) {
			t.Run(version+"/"+way, func(t *testing.T) {
				p.reset(t)
				expect(t, send(t, updater, `{"recalled":true}`), http.StatusForbidden, "may not change .spec.recalled", "granular:brewery.example.com/recall")
				p.holds(t, one, "", "spec", "recalled")
				expect(t, send(t, recaller, `{"recalled":true}`), http.StatusOK)
				p.holds(t, one, "true", "spec", "recalled")
			})
		}
		expect(t, send(t, updater, http.MethodPost, "/apis/brewery.example.com/"+version+"/namespaces/default/kegs", "application/json", keg(version, "recalled", `{"recalled":true}`)), http.StatusForbidden, ".spec.recalled")
	}
}

// values: the condition of a barrier has all characters that a CEL expression may have, except quotation marks and backslashes.
func values(t *testing.T, p *plane) {
	updater := p.grant(t, "presser", []string{"kegs"}, "update", "patch")
	for pressure, code := range map[int]int{1: http.StatusOK, 2: http.StatusForbidden, 3: http.StatusForbidden} {
		for version := range map[string]bool{"v1": true, "v1beta1": true} {
			p.reset(t)
			answer := ways(version)["merge"](t, updater, fmt.Sprintf(`{"pressure":%d}`, pressure))
			expect(t, answer, code)
			if code == http.StatusOK {
				p.holds(t, one, "1", "spec", "pressure")
			} else {
				p.holds(t, one, "", "spec", "pressure")
			}
		}
	}
}

// throughScale: the field that the subresource scale writes is the one with the verb scale. A barrier on it holds through both endpoints.
func throughScale(t *testing.T, p *plane) {
	scaler := p.grant(t, "scaler", []string{"kegs", "kegs/scale"}, "granular", "granular:scale")
	for i, at := range []string{kegs, beta} {
		expect(t, patch(t, scaler, at+"/one/scale", fmt.Sprintf(`{"spec":{"replicas":%d}}`, i+5)), http.StatusOK)
		p.holds(t, one, fmt.Sprint(i+5), "spec", "taps")
	}
	expect(t, patch(t, scaler, kegs+"/one", `{"spec":{"taps":7}}`), http.StatusOK)

	updater := p.grant(t, "rescaler", []string{"kegs", "kegs/scale"}, "update", "patch")
	p.kubectl(t, "", "apply", "--server-side", "-f", "../../config/crd")
	p.kubectl(t, "", "wait", "--for=condition=Established", "--timeout=20s", "-f", "../../config/crd")
	p.kubectl(t, `
apiVersion: fieldperm.dev/v1alpha1
kind: UncoveredPermissionSet
metadata: {name: taps}
spec:
  uncoveredPermissions: ["granular:scale"]
  resources: [{apiGroups: [brewery.example.com], resources: [kegs]}]
`, "create", "-f", "-")
	t.Cleanup(func() { p.kubectl(t, "", "delete", "uncoveredpermissionset", "taps") })
	// A dry run, because a second write of the same value would change nothing.
	eventually(t, wait, func() *corpus.Answer {
		return send(t, updater, http.MethodPatch, kegs+"/one", merge, `{"spec":{"taps":8}}`, "dryRun=All")
	}, http.StatusForbidden)
	before := p.stored(t, one, "spec", "taps")
	for _, at := range []string{kegs, beta} {
		eventually(t, wait, func() *corpus.Answer {
			return send(t, updater, http.MethodPatch, at+"/one/scale", merge, `{"spec":{"replicas":9}}`, "dryRun=All")
		}, http.StatusForbidden)
		expect(t, patch(t, updater, at+"/one/scale", `{"spec":{"replicas":9}}`), http.StatusForbidden, "granular:scale")
		p.holds(t, one, before, "spec", "taps")
	}
	expect(t, patch(t, scaler, kegs+"/one/scale", `{"spec":{"replicas":9}}`), http.StatusOK)
	p.holds(t, one, "9", "spec", "taps")
}

// hidden: a Formula of v1beta1 lacks the field behind a barrier, so that a write through it may erase the field. Its resource is recipes,
// which does not follow from the kind.
func hidden(t *testing.T, p *plane) {
	updater := p.grant(t, "cook", []string{"recipes"}, "create", "update", "patch")
	const older = "/apis/brewery.example.com/v1beta1/recipes"
	expect(t, patch(t, updater, recipes+"/ale", `{"spec":{"secret":"sugar"}}`), http.StatusForbidden, "granular:brewery.example.com/secret")
	expect(t, patch(t, updater, older+"/ale", `{"spec":{"hops":"fuggle"}}`), http.StatusForbidden, "granular:brewery.example.com/secret")
	p.holds(t, "recipes/ale", `{"hops":"cascade","secret":"salt"}`, "spec")
	hopper := p.grant(t, "hopper", []string{"recipes"}, "granular", "granular:brewery.example.com/hops")
	expect(t, patch(t, hopper, older+"/ale", `{"spec":{"hops":"fuggle"}}`), http.StatusForbidden, "the versions of this kind differ")
	expect(t, patch(t, hopper, recipes+"/ale", `{"spec":{"hops":"fuggle"}}`), http.StatusForbidden, "the versions of this kind differ")
	p.holds(t, "recipes/ale", `{"hops":"cascade","secret":"salt"}`, "spec")
	keeper := p.grant(t, "keeper", []string{"recipes"}, "granular", "granular:*", "granular:brewery.example.com/secret")
	expect(t, patch(t, keeper, recipes+"/ale", `{"spec":{"secret":"sugar"}}`), http.StatusOK)
	p.holds(t, "recipes/ale", `"sugar"`, "spec", "secret")
}
