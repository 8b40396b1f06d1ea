package plugin

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/internal/needs"
)

var updateDiff = flag.Bool("update-diff", false, "rewrite testdata/diff/golden")

func diffObject(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	out := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &out.Object); err != nil {
		t.Fatal(err)
	}
	return out
}

// newDifference returns a command about alice, whose grants are in a file, and its streams.
func newDifference(t *testing.T) (o *difference, out, errOut *bytes.Buffer) {
	t.Helper()
	out, errOut = &bytes.Buffer{}, &bytes.Buffer{}
	o = &difference{inquirer: inquirer{options: options{
		streams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: errOut}, cluster: genericclioptions.NewConfigFlags(true),
		as: "alice", grants: []string{"testdata/diff/grants.yaml"}, fromFiles: true, output: outputTable,
	}}}
	var err error
	if o.caller, err = o.inquirer.caller(t.Context()); err != nil {
		t.Fatal(err)
	}
	return o, out, errOut
}

func infoOf(object *unstructured.Unstructured, plural string) *resource.Info {
	gvk := object.GroupVersionKind()
	return &resource.Info{
		Name: object.GetName(), Namespace: object.GetNamespace(),
		Mapping: &meta.RESTMapping{GroupVersionKind: gvk, Resource: gvk.GroupVersion().WithResource(plural)},
	}
}

const (
	liveDeployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, annotations: {kubectl.kubernetes.io/last-applied-configuration: '1'}}, spec: {replicas: 1, template: {spec: {containers: [{name: web, image: 'web:1'}]}}}}`
	newDeployment  = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, annotations: {kubectl.kubernetes.io/last-applied-configuration: '2'}}, spec: {replicas: 3, template: {spec: {containers: [{name: web, image: 'web:2'}]}}}}`
	newConfigMap   = `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shop, annotations: {kubectl.kubernetes.io/last-applied-configuration: '1'}}, data: {colour: red}}`
)

// applies returns the answer about an update and a create of alice.
func applies(t *testing.T, o *difference) []*written {
	t.Helper()
	live, stored, created := diffObject(t, liveDeployment), diffObject(t, newDeployment), diffObject(t, newConfigMap)
	update := &written{info: infoOf(stored, "deployments"), operation: "update", computed: true, seen: []needs.Change{
		{Path: `.metadata.labels["stamp"]`, Needs: []string{"granular:label(stamp)", "granular:labels", "granular:metadata", "granular:*"}},
		{Path: ".spec.replicas", Needs: []string{"granular:scale"}},
	}, byFieldperm: true, notes: []string{"a note"}}
	create := &written{info: infoOf(created, "configmaps"), operation: "create"}
	if err := errors.Join(o.decide(t.Context(), update, live, stored), o.decide(t.Context(), create, nil, created)); err != nil {
		t.Fatal(err)
	}
	return []*written{update, create}
}

func TestDiffGolden(t *testing.T) {
	for _, format := range []string{outputTable, outputJSON, outputYAML, outputHTML, outputRole} {
		t.Run(format, func(t *testing.T) {
			o, out, errOut := newDifference(t)
			o.output = format
			if err := o.print(applies(t, o), nil); err != nil {
				t.Fatal(err)
			}
			got := out.String()
			if format == outputHTML {
				got = got[strings.Index(got, "<main"):strings.Index(got, "</main>")] // The rest is of every page.
			}
			if errOut.Len() > 0 {
				got += "standard error:\n" + errOut.String()
			}
			file := filepath.Join("testdata", "diff", "golden", format)
			if *updateDiff {
				if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(got), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil || got != string(want) {
				t.Errorf("%v: got\n%s\nwant\n%s", err, got, want)
			}
		})
	}
}

func TestDiffOutcome(t *testing.T) {
	o, _, _ := newDifference(t)
	changed := applies(t, o)
	held := &written{answer: needs.Answer{Allowed: true, Enough: true, Changes: []needs.Change{{Path: ".spec.replicas", Held: "granular:scale"}}}}
	unchanged := &written{unchanged: true}
	unread := &written{unchanged: true, answer: needs.Answer{Ask: []string{"get"}}}
	refused := &written{answer: needs.Answer{Allowed: true, Enough: true}, refusal: "quota"}
	notLetIn := &written{answer: needs.Answer{Ask: []string{"granular"}}}
	for _, test := range []struct {
		name        string
		found       []*written
		diff, check error
	}{
		{"nothing", nil, nil, nil},
		{"unchanged", []*written{unchanged}, nil, nil},
		{"unchanged, and kubectl apply may not read it", []*written{unread}, nil, ErrDenied},
		{"a change that is held", []*written{unchanged, held}, ErrDifferences, nil},
		{"a change that is not held", changed, ErrDifferences, ErrDenied},
		{"a refusal", []*written{refused}, nil, ErrDenied},
		{"no change, and not let in", []*written{notLetIn}, nil, ErrDenied},
	} {
		o.check = false
		if err := o.outcome(test.found); !errors.Is(err, test.diff) {
			t.Errorf("%s: %v, want %v", test.name, err, test.diff)
		}
		o.check = true
		if err := o.outcome(test.found); !errors.Is(err, test.check) {
			t.Errorf("%s, --check: %v, want %v", test.name, err, test.check)
		}
	}
}

// TestDiffIsNoYesWhereAnObjectFailed: an object that could not be compared is named, and the answer is no.
func TestDiffIsNoYesWhereAnObjectFailed(t *testing.T) {
	o, out, _ := newDifference(t)
	o.output = outputJSON
	if err := o.print(nil, errors.New("Deployment shop/web: is invalid")); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, `"allowed": false`) || !strings.Contains(text, "is invalid") {
		t.Errorf("got %s", text)
	}
}

func TestDiffReadsTheCausesOfADenial(t *testing.T) {
	cause := func(field, message string) metav1.StatusCause {
		return metav1.StatusCause{Field: field, Message: message}
	}
	got := changesIn([]metav1.StatusCause{
		cause(".spec.clusterIP", `services "o" is forbidden: User "x: needs granular:*" may not change .spec.clusterIP: needs any one of granular:clusterAddresses, granular:specification, granular:*; no field manager owns this change (4 more changes were not looked at)`),
		cause(".spec.replicas", "needs granular:scale"),
		cause(".spec.paused", "needs any one of granular:suspension, granular:*"),
		cause(".spec.x", "no verb covers it"),
		cause(".spec.y", "needs update, granular"),
		cause("", "3 further changes are not listed"),
	})
	var text []string
	for _, c := range got {
		text = append(text, c.Path+" "+strings.Join(c.Needs, ","))
	}
	want := ".spec.clusterIP granular:clusterAddresses,granular:specification,granular:*; .spec.replicas granular:scale; .spec.paused granular:suspension,granular:*"
	if strings.Join(text, "; ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(text, "; "), want)
	}
}

func TestDiffValidates(t *testing.T) {
	for args, want := range map[string]string{
		"":                            "manifests are missing: give -f",
		"-f x.yaml -o xml":            `--output "xml" is not known: use table, json, yaml, html or role`,
		"-f x.yaml --as-group g":      "--as-group is given without --as: name the user",
		"-f x.yaml --force-conflicts": "--force-conflicts is about server-side apply: add --server-side",
		"-f x.yaml --max-checks 0":    "--max-checks 0 allows no check: use 1 or more",
	} {
		cmd := NewDiffCommand(genericiooptions.NewTestIOStreamsDiscard())
		cmd.SetArgs(strings.Fields(args))
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) || ExitCode(err) != 2 {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
}
