package load

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
)

func files(contents map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, text := range contents {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

func TestCatalogue_Expands(t *testing.T) {
	fs := files(map[string]string{
		"a.yaml": "fragments:\n  inner: [{path: .x, verb: a}, {path: '', verb: b, optional: true}]\n  outer: [{path: '[*]', include: inner}]\n",
		"b.yaml": "kinds:\n- {group: '*', kind: '*', permissions: [{path: .m, role: serverWritten}]}\n- {group: g, kind: K, versions: [v1], permissions: [{path: .l, include: outer}, {path: .o, include: outer, optional: true}]}\n- {group: g, kind: K, versions: [v2], permissions: [{path: .l, verb: a}]}\n",
	})
	docs, err := catalogue(fs, true)
	if err != nil {
		t.Fatal(err)
	}
	if len(docs) != 3 || docs[0].Rank != compile.RankEveryKind || docs[1].Rank != compile.RankCatalogue || docs[0].Entries[0].Role != schema.RoleServerWritten {
		t.Fatalf("documents %+v", docs)
	}
	var got []string
	for _, e := range docs[1].Entries {
		text := e.Path + " " + e.Verb
		if e.Optional {
			text += "?"
		}
		got = append(got, text)
	}
	if want := ".l[*].x a, .l[*] b?, .o[*].x a?, .o[*] b?"; strings.Join(got, ", ") != want {
		t.Errorf("entries %q, want %q", strings.Join(got, ", "), want)
	}
	if p := docs[1].Entries[0].Pointer; p != "/kinds/1/permissions/0/include/outer/0/include/inner/0" {
		t.Errorf("pointer %q", p)
	}
	lenient, err := catalogue(fs, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range lenient {
		for _, e := range d.Entries {
			if !e.Optional {
				t.Errorf("%s %s: is not optional", d.Source, e.Path)
			}
		}
	}
}

func TestCatalogue_Refuses(t *testing.T) {
	const kind = "kinds:\n- group: g\n  kind: K\n  permissions:\n  - "
	for name, test := range map[string]struct {
		files    map[string]string
		begins   string
		contains string
	}{
		"unknown key":       {map[string]string{"a.yaml": kind + "{path: .a, vreb: a}\n"}, "catalogue/a.yaml:/kinds/0/permissions/0/vreb: ", "unknown field"},
		"key twice":         {map[string]string{"a.yaml": kind + "path: .a\n    path: .b\n"}, "catalogue/a.yaml:6: ", "already set"},
		"unknown fragment":  {map[string]string{"a.yaml": kind + "{path: .a, include: x}\n"}, "catalogue/a.yaml#K:/kinds/0/permissions/0/include: ", `fragment "x" does not exist`},
		"fragment cycle":    {map[string]string{"a.yaml": kind + "{path: .a, include: x}\n", "b.yaml": "fragments: {x: [{path: .b, include: x}]}\n"}, "catalogue/a.yaml#K:/kinds/0/permissions/0/include/x/0/include: ", "includes itself"},
		"include with verb": {map[string]string{"a.yaml": kind + "{path: .a, include: x, verb: a}\nfragments: {x: []}\n"}, "catalogue/a.yaml#K:/kinds/0/permissions/0: ", "make two entries"},
		"fragment twice":    {map[string]string{"a.yaml": "fragments: {x: []}\n", "b.yaml": "fragments: {x: []}\n"}, "catalogue/b.yaml:/fragments/x: ", "rename one"},
		"unknown role":      {map[string]string{"a.yaml": kind + "{path: .a, role: server}\n"}, "catalogue/a.yaml#K:/kinds/0/permissions/0/role: ", `role "server"`},
		"unknown power":     {map[string]string{"a.yaml": kind + "{path: .a, verb: a, powers: [flies]}\n"}, "catalogue/a.yaml#K:/kinds/0/permissions/0/powers: ", `power "flies" is unknown`},
		"powers of no verb": {map[string]string{"a.yaml": kind + "{path: .a, role: identity, powers: [deletes]}\n"}, "catalogue/a.yaml#K:/kinds/0/permissions/0: ", "add a verb"},
		"why of no verb":    {map[string]string{"a.yaml": kind + "{path: .a, role: identity, why: it does}\n"}, "catalogue/a.yaml#K:/kinds/0/permissions/0: ", "add a verb"},
		"kind twice":        {map[string]string{"a.yaml": kind + "{path: .a, verb: a}\n", "b.yaml": "kinds: [{group: g, kind: K, versions: [v1]}]\n"}, "catalogue/b.yaml:/kinds/0: ", "stands twice"},
		"half of all kinds": {map[string]string{"a.yaml": "kinds: [{group: g, kind: '*'}]\n"}, "catalogue/a.yaml#*:/kinds/0: ", "name one kind"},
	} {
		t.Run(name, func(t *testing.T) {
			docs, err := catalogue(files(test.files), true)
			wantFaults(t, separate(err), test.begins, test.contains)
			if docs != nil {
				t.Error("a faulty catalogue came through")
			}
		})
	}
}

// KEP-3617: fields that represent the same concept in different kinds have the same verb, and none of them names its kind.
func TestCatalogue_AConceptHasOneVerbInEveryKind(t *testing.T) {
	s := compileBuiltIn(t)
	for verb, places := range map[string][]string{
		"scale":                               {"apps Deployment .spec.replicas", "apps ReplicaSet .spec.replicas", "apps StatefulSet .spec.replicas", " ReplicationController .spec.replicas"},
		"suspension":                          {"apps Deployment .spec.paused", "batch Job .spec.suspend", "batch CronJob .spec.suspend"},
		"image(containerName)":                {" Pod .spec.containers[*].image", "apps Deployment .spec.template.spec.containers[*].image", "batch CronJob .spec.jobTemplate.spec.template.spec.initContainers[*].image"},
		"nodeAssignment":                      {" Pod .spec.nodeName", "apps DaemonSet .spec.template.spec.nodeName"},
		"template":                            {"apps Deployment .spec.template", " PodTemplate .template"},
		"condition(conditionType)":            {" Pod .status.conditions[*]", "apps Deployment .status.conditions[*]", "networking.k8s.io ServiceCIDR .status.conditions[*]"},
		"finalizer(prefix of finalizer)":      {" ConfigMap .metadata.finalizers[*]", "apps Deployment .metadata.finalizers[*]"},
		"annotation(prefix of annotationKey)": {" ConfigMap .metadata.annotations[*]", "batch Job .metadata.annotations[*]"},
	} {
		for _, place := range places {
			at := strings.SplitN(place, " ", 3)
			got := verbsAt(t, s, gvk(at[0], "v1", at[1]), at[2])
			if got != verb {
				t.Errorf("%s has %q, want %q", place, got, verb)
			}
			if strings.Contains(strings.ToLower(got), strings.ToLower(at[1])) {
				t.Errorf("%s: %q names the kind", place, got)
			}
		}
	}
}
