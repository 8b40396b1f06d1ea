package fieldrole

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/internal/needs"
	"github.com/fieldperm/fieldperm/verbs"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	if text == "" {
		return nil
	}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	out := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(raw, &out.Object); err != nil {
		t.Fatal(err)
	}
	return out
}

const (
	deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {replicas: 1, template: {spec: {containers: [{name: web, image: a}]}}}, status: {replicas: 1}}"
	larger     = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, labels: {example.com/tier: gold}}, spec: {replicas: 2, template: {spec: {containers: [{name: web, image: b}]}}}, status: {replicas: 2}}"
	widget     = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {size: 1, safe: {ok: a, danger: {inner: a}}}}"
	dangerous  = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {size: 1, safe: {ok: b, danger: {inner: b}}}}"
	settings   = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, settings: {color: red}, spec: {size: 1, safe: {ok: a, danger: {inner: a}}}}"
)

// TestP1_RolesOfChangesAreEnoughAndLeast decides on each request again: Allow with its verbs, and not without any one of them.
func TestP1_RolesOfChangesAreEnoughAndLeast(t *testing.T) {
	for name, c := range map[string]struct {
		before, after string
		options       Options
		// requests are the resources with their verbs.
		requests string
	}{
		"update with status": {before: deployment, after: larger, requests: "deployments: granular granular:image(web) granular:label(example.com) granular:scale; deployments/status: granular granular:status"},
		"create":             {after: "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}, data: {a: b}}", requests: "configmaps: granular granular:creation granular:datum(a)"},
		"create with status": {after: deployment, requests: "deployments: granular granular:container(web) granular:creation; deployments/status: granular granular:status"},
		"barrier":            {before: widget, after: dangerous, requests: "widgets: granular granular:example.com/inner granular:example.com/safe"},
		"root":               {before: widget, after: settings, options: Options{Wildcard: true}, requests: "widgets: granular granular:*"},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := object(t, c.before), object(t, c.after)
			rules, err := kinds(t).Change(t.Context(), before, after, c.options)
			if err != nil {
				t.Fatal(err)
			}
			requests := rules[0].Target.writes(before, after)
			var got []string
			for i, r := range rules {
				got = append(got, r.name()+": "+strings.Join(r.Verbs, " "))
				proveLeast(t, r, requests[i])
			}
			if text := strings.Join(got, "; "); text != c.requests {
				t.Errorf("got  %s\nwant %s", text, c.requests)
			}
		})
	}
}

func proveLeast(t *testing.T, r *Rule, w write) {
	t.Helper()
	request, err := r.Target.request(w)
	if err != nil {
		t.Fatal(err)
	}
	enter := "patch"
	if w.before == nil {
		enter = "create"
	}
	least := r.Verbs
	if r.Updates {
		least = append(slices.Clone(least), readVerb)
	}
	if r.Updates != (enter == "patch") {
		t.Errorf("%s: A7: get %t for a %s", r.name(), r.Updates, enter)
	}
	for i := range len(least) + 1 {
		held := slices.Clone(least)
		if i > 0 {
			held = slices.Delete(held, i-1, i)
		}
		answer, err := needs.Find(t.Context(), needs.Question{Reviewer: r.Target.reviewer(held), Request: request, Enter: []string{enter}})
		if err != nil || answer.Allowed != (i == 0) {
			t.Errorf("%s with %q: %+v, %v", r.name(), held, answer, err)
		}
	}
}

func TestChange_Golden(t *testing.T) {
	rules, err := kinds(t).Change(t.Context(), object(t, deployment), object(t, larger), Options{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := (&Role{Namespace: "shop", ResourceNames: []string{"web"}}).Manifest(rules)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "change.yaml", text)
}

func TestChange_Errors(t *testing.T) {
	for _, c := range []struct{ before, after, want string }{
		{deployment, deployment, "--old and --new are equal"},
		{deployment, widget, "give two states of one object"},
		{widget, strings.Replace(widget, "name: w", "name: v", 1), "give two states of one object"},
		{widget, settings, "only granular:* covers the change, and with it every field that no barrier guards: give the field a verb"},
		{"", "{apiVersion: nothing/v1, kind: Widgit, metadata: {name: w}}", "is not known: use example.com/v1/Widget"},
		{"", "{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: w}, spec: {maxReplicas: 1}}", "use version v2"},
	} {
		if _, err := kinds(t).Change(t.Context(), object(t, c.before), object(t, c.after), Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// TestLine: a key of a map cannot end a comment of the role and add to its rules.
func TestLine(t *testing.T) {
	rules, err := target(t, "v1/ConfigMap").Fields(t.Context(), []string{".data[\"a\\nrules: []\u2028b\"]"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := (&Role{}).Manifest(rules)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		if strings.HasPrefix(line, "rules: ") || strings.ContainsRune(line, '\u2028') {
			t.Errorf("line %q of\n%s", line, text)
		}
	}
	if rules[0].Verbs[0] != verbs.Marker {
		t.Error(rules[0].Verbs)
	}
}
