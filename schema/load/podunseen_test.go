package load

import (
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/fieldperm/change"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/verbs"
)

// allows reports whether a user with the generic permission and one granular verb may make a change. old is "" for a new object.
func allows(t *testing.T, s *schema.Schema, kind runtimeschema.GroupVersionKind, old, new, held string) bool {
	t.Helper()
	return !slices.ContainsFunc(behindBarriers(t, s, kind, nil, old, new), func(r change.Requirement) bool {
		return !slices.ContainsFunc(r.Candidates(), func(v verbs.Verb) bool { return v.String() == held })
	})
}

// inDeployment returns a Deployment with a template of Pods, "" for "".
func inDeployment(template string) string {
	if template == "" {
		return ""
	}
	return `{"spec":{"template":` + template + `}}`
}

// TestC8_WhatPassesADerivedBarrierPassesItOnPods: what a user with a verb below a barrier may not create as a Pod, the user may not create as a
// template from which the API server makes that Pod.
func TestC8_WhatPassesADerivedBarrierPassesItOnPods(t *testing.T) {
	const containers = `"containers":[{"name":"a","image":"b"}]`
	const onPort = `"containers":[{"name":"a","image":"b","ports":[{"containerPort":80,"protocol":"TCP"}]}]`
	const selected = `{"spec":{"runtimeClassName":"heavy",` + containers + `}}`
	const asSelected = `{"spec":{"runtimeClassName":"heavy","nodeSelector":{"heavy":"true"},` + containers + `}}`
	const onHost = `{path: '.spec.containers[*]', verb: example.com/onHost, excludedWhen: 'has(self.ports) && self.ports.exists(p, has(p.hostPort))'}`
	network := func(image, port string) string {
		return `{"spec":{"hostNetwork":true,"containers":[{"name":"a","image":"` + image + `","ports":[{"containerPort":80,` + port + `"protocol":"TCP"}]}]}}`
	}
	const hostPort = `{path: '.spec.containers[*].ports[*].hostPort', verb: example.com/onHost, excluded: true}`
	const limits = `{path: '.spec.containers[*].resources.requests', verb: example.com/large, excludedWhen: "self != null && has(self.cpu) && self.cpu == '8'"}`
	resources := func(requests string) string {
		return `{"spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":"8"}` + requests + `}}]}}`
	}
	for name, c := range map[string]struct {
		onPods, held string
		// template is what the user writes, and pod what the API server makes of it, as seen on kube-apiserver 1.37.2.
		template, pod string
		// These are the values before, "" for new objects.
		oldTemplate, oldPod string
		want                bool
	}{
		"a condition above the derived field": {
			`{path: .spec, verb: example.com/placed, excludedWhen: 'has(self.nodeSelector)'}`, "granular:nodeSelection", selected, asSelected, "", "", false,
		},
		"the same, with the verb of the barrier": {
			`{path: .spec, verb: example.com/placed, excludedWhen: 'has(self.nodeSelector)'}`, "granular:example.com/placed", selected, asSelected, "", "", true,
		},
		"the same, with another barrier that the user passes": {
			`{path: .spec, verb: example.com/placed, excludedWhen: 'has(self.nodeSelector)'}, {path: .spec.nodeSelector, verb: example.com/selector, excluded: true}`, "granular:example.com/selector",
			selected, asSelected, "", "", false,
		},
		"a verb in an item that is new": {
			`{path: '.spec.imagePullSecrets[*]', verb: example.com/pull, excluded: true}, {path: '.spec.imagePullSecrets[*].name', verb: example.com/pullName}`, "granular:example.com/pullName",
			`{"spec":{"serviceAccountName":"other",` + containers + `}}`, `{"spec":{"serviceAccountName":"other","imagePullSecrets":[{"name":"special"}],` + containers + `}}`, "", "", false,
		},
		"another field below the condition": {
			onHost, "granular:none", network("evil", ""), network("evil", `"hostPort":80,`), network("good", ""), network("good", `"hostPort":80,`), false,
		},
		"a zero, which the API server replaces": {
			`{path: '.spec.containers[*]', verb: example.com/onHost, excludedWhen: 'self.ports[0].hostPort == 80'}, {path: '.spec.containers[*].ports[*]', verb: example.com/onPort, excludedWhen: 'self.hostPort == 80'}`, "granular:example.com/onHost",
			`{"spec":{"hostNetwork":true,"containers":[{"name":"a","ports":[{"containerPort":80,"hostPort":0,"name":"evil","protocol":"TCP"}]}]}}`,
			`{"spec":{"hostNetwork":true,"containers":[{"name":"a","ports":[{"containerPort":80,"hostPort":80,"name":"evil","protocol":"TCP"}]}]}}`,
			`{"spec":{"hostNetwork":true,"containers":[{"name":"a","ports":[{"containerPort":80,"hostPort":0,"protocol":"TCP"}]}]}}`,
			`{"spec":{"hostNetwork":true,"containers":[{"name":"a","ports":[{"containerPort":80,"hostPort":80,"protocol":"TCP"}]}]}}`, false,
		},
		"another field without what it is derived from": {
			onHost, "granular:none", `{"spec":{"containers":[{"name":"a","image":"evil"}]}}`, `{"spec":{"containers":[{"name":"a","image":"evil"}]}}`, `{"spec":{` + containers + `}}`, `{"spec":{` + containers + `}}`, true,
		},
		"a removed value, which is derived then": {
			limits, "granular:none", resources(""), resources(`,"requests":{"cpu":"8"}`), resources(`,"requests":{"cpu":"1"}`), resources(`,"requests":{"cpu":"1"}`), false,
		},
		"a value that stays": {
			limits, "granular:none", resources(`,"requests":{"cpu":"2"}`), resources(`,"requests":{"cpu":"2"}`), resources(`,"requests":{"cpu":"1"}`), resources(`,"requests":{"cpu":"1"}`), true,
		},
		"a port without the network of the host": {
			hostPort, "granular:none", `{"spec":{` + onPort + `}}`, `{"spec":{` + onPort + `}}`, "", "", true,
		},
		"a port with the network of the host": {
			hostPort, "granular:none", network("b", ""), network("b", `"hostPort":80,`), `{"spec":{"hostNetwork":true,` + containers + `}}`, `{"spec":{"hostNetwork":true,` + containers + `}}`, false,
		},
		"the network of the host for a port": {
			hostPort, "granular:none", network("b", ""), network("b", `"hostPort":80,`), `{"spec":{` + onPort + `}}`, `{"spec":{` + onPort + `}}`, false,
		},
		"a condition that asks whether the item is there": {
			`{path: '.spec.containers[*]', verb: example.com/evil, excludedWhen: "self != null && self.image.startsWith('evil')"}`, "granular:none",
			`{"spec":{` + onPort + `}}`, `{"spec":{` + onPort + `}}`, "", "", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := compileWorkloads(t, permissionSchema("a", "", "Pod", c.onPods))
			if got := allows(t, s, gvk("", "v1", "Pod"), c.oldPod, c.pod, c.held); got != c.want {
				t.Errorf("the Pod: allowed %t", got)
			}
			if got := allows(t, s, gvk("apps", "v1", "Deployment"), inDeployment(c.oldTemplate), inDeployment(c.template), c.held); got != c.want {
				t.Errorf("the Deployment: allowed %t", got)
			}
			if got := allows(t, s, gvk("batch", "v1", "CronJob"), inJob(c.oldTemplate), inJob(c.template), c.held); got != c.want {
				t.Errorf("the CronJob: allowed %t", got)
			}
		})
	}
}

// inJob returns a CronJob with a template of Pods.
func inJob(template string) string {
	if template == "" {
		return ""
	}
	return `{"spec":{"jobTemplate":{"spec":{"template":` + template + `}}}}`
}

// TestC8_NoVerbOfTheTemplatePassesADerivedBarrier: a derived barrier has a line of its own also where the template has its verb.
func TestC8_NoVerbOfTheTemplatePassesADerivedBarrier(t *testing.T) {
	requests := permissionSchema("a", "", "Pod", `{path: '.spec.containers[*].resources.requests', verb: example.com/y, excluded: true}`)
	own := permissionSchema("b", "apps", "Deployment", `{path: '.spec.template.spec.containers[*].resources.limits', verb: example.com/y}, {path: '.spec.template.spec.containers[*].resources.limits["cpu"]', verb: example.com/w}`)
	of := func(limits string) string {
		return `{"spec":{"template":{"spec":{"containers":[{"name":"web","resources":{"limits":` + limits + `}}]}}}}`
	}
	if got := passingOf(t, gvk("apps", "v1", "Deployment"), "deployments", of(`{"memory":"1"}`), of(`{"memory":"1","cpu":"1"}`), requests, own); got != "[y w] [y]" {
		t.Errorf("limits: passed by %q", got)
	}
	profile := permissionSchema("a", "", "Pod", `{path: '.spec.containers[*].securityContext.appArmorProfile', verb: example.com/y, excluded: true}`)
	own = permissionSchema("b", "apps", "Deployment", `{path: '.spec.template.metadata.annotations[*]', verb: example.com/y}, {path: '.spec.template.metadata.annotations["container.apparmor.security.beta.kubernetes.io/web"]', verb: example.com/w}`)
	if got := passingOf(t, gvk("apps", "v1", "Deployment"), "deployments", `{"spec":{"template":{"metadata":{"annotations":{"x":"a"}}}}}`,
		`{"spec":{"template":{"metadata":{"annotations":{"x":"a","container.apparmor.security.beta.kubernetes.io/web":"unconfined"}}}}}`, profile, own); got != "[y w] [y]" {
		t.Errorf("annotation: passed by %q", got)
	}
}

// TestC8_AFaultOfABarrierOfPodsHasThePathOfItsDocument, not that of the first template.
func TestC8_AFaultOfABarrierOfPodsHasThePathOfItsDocument(t *testing.T) {
	catalogue, err := Catalogue(false)
	if err != nil {
		t.Fatal(err)
	}
	// The API server may bring the last one into being, so that its condition is evaluated for that.
	for _, path := range []string{".spec.hostNetwork", ".spec.nodeSelector", ".spec.containers[*].securityContext"} {
		docs := schema.Documents{Topologies: []schema.Topology{workloadKinds(t)}, Permissions: catalogue}
		more, errs := Decode("test", []byte(permissionSchema("a", "", "Pod", `{path: '`+path+`', verb: example.com/y, excludedWhen: 'self =='}`)))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		if _, errs = schema.Compile(docs.Append(more)); len(errs) != 1 || !strings.Contains(errs[0].Error(), `"`+path+`": excludedWhen`) {
			t.Errorf("%s: %v", path, errs)
		}
	}
}

// TestC8_TwoLoopsMayHaveVariablesOfOneName: the variable of the inner loop hides that of the outer one.
func TestC8_TwoLoopsMayHaveVariablesOfOneName(t *testing.T) {
	s := compileWorkloads(t, permissionSchema("a", "", "Pod", `{path: .spec, verb: example.com/y, excludedWhen: "self != null && self.containers.exists(c, has(c.ports) && c.ports.exists(c, has(c.hostPort) && c.hostPort == 22))"}`))
	deployment := func(port string) string {
		return `{"spec":{"template":{"spec":{"containers":[{"name":"a","ports":[{"containerPort":80,` + port + `}]}]}}}}`
	}
	if allows(t, s, gvk("apps", "v1", "Deployment"), deployment(`"hostPort":80`), deployment(`"hostPort":22`), "granular:x") {
		t.Error("the port passes the barrier")
	}
	if !allows(t, s, gvk("apps", "v1", "Deployment"), deployment(`"hostPort":80`), deployment(`"hostPort":81`), "granular:x") {
		t.Error("another port is barred")
	}
}

// TestC8_AFieldThatLabelsAreDerivedFromNeedsTheVerbOfTheTemplate: the verb of the Deployment's own labels does not pass a barrier on those of its Pods.
func TestC8_AFieldThatLabelsAreDerivedFromNeedsTheVerbOfTheTemplate(t *testing.T) {
	s := compileWorkloads(t, permissionSchema("a", "", "Pod", `{path: .metadata.labels, verb: labels, parameterSource: labelKey, excluded: true}`))
	deployment := func(field string) string {
		return `{"spec":{"template":{"spec":{` + field + `"containers":[{"name":"a"}]}}}}`
	}
	for held, want := range map[string]bool{"granular:labels": false, "granular:templateLabels": true} {
		if got := allows(t, s, gvk("apps", "v1", "Deployment"), deployment(""), deployment(`"nodeName":"n",`), held); got != want {
			t.Errorf("with %s: %t, want %t", held, got, want)
		}
	}
}

// TestC8_AConditionOnAllItemsIsEvaluatedIfEachShowsWhatItReads: the API server adds only what is absent. Where it adds items, no item shows them.
func TestC8_AConditionOnAllItemsIsEvaluatedIfEachShowsWhatItReads(t *testing.T) {
	const ports = `{path: .spec, verb: example.com/barred, excludedWhen: '!self.containers.all(c, c.ports.all(p, p.hostPort == 8080))'}`
	const port80 = `{path: .spec, verb: example.com/barred, excludedWhen: 'self.containers.exists(c, c.ports.exists(p, p.?hostPort.orValue(0) == 80))'}`
	const tolerations = `{path: .spec, verb: example.com/barred, excludedWhen: "!self.tolerations.all(t, t.key == 'a')"}`
	template := func(more, image string) string {
		return inDeployment(`{"spec":{` + more + `,"containers":[{"name":"a","image":"` + image + `","ports":[{"containerPort":8080,"hostPort":8080}]},{"name":"b","image":"c","ports":[PORTS{"containerPort":8080,"hostPort":8080}]}]}}`)
	}
	for name, c := range map[string]struct {
		barrier, more, port string
		want                bool
	}{
		"each item shows it":             {ports, `"hostNetwork":true`, "", true},
		"each item shows another value":  {port80, `"hostNetwork":true`, "", true},
		"one item does not":              {port80, `"hostNetwork":true`, `{"containerPort":80},`, false},
		"one item has zero":              {port80, `"hostNetwork":true`, `{"containerPort":80,"hostPort":0},`, false},
		"one item is none":               {ports, `"hostNetwork":true`, `"x",`, false},
		"the condition is true":          {ports, `"hostNetwork":true`, `{"containerPort":80,"hostPort":80},`, false},
		"the API server may add items":   {tolerations, `"runtimeClassName":"heavy","tolerations":[{"key":"a"}]`, "", false},
		"and adds none":                  {tolerations, `"tolerations":[{"key":"a"}]`, "", true},
		"without items nothing is shown": {`{path: .spec, verb: example.com/barred, excludedWhen: '!self.initContainers.all(c, c.ports.all(p, p.hostPort == 8080))'}`, `"hostNetwork":true,"initContainers":[]`, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := compileWorkloads(t, permissionSchema("a", "", "Pod", c.barrier))
			with := func(image string) string { return strings.Replace(template(c.more, image), "PORTS", c.port, 1) }
			if got := allows(t, s, gvk("apps", "v1", "Deployment"), with("x"), with("y"), ""); got != c.want {
				t.Errorf("allows %t, want %t", got, c.want)
			}
		})
	}
}
