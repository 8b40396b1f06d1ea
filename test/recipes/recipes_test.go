//go:build integration

package recipes

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/fieldperm/fieldperm/test/corpus"
	"github.com/fieldperm/fieldperm/test/e2e"
	"github.com/fieldperm/fieldperm/test/stack"
)

// TestRecipes: the user of a recipe can make the writes that it promises, and no other write that an attacker would try.
func TestRecipes(t *testing.T) {
	page, err := os.ReadFile("../../docs/guide/recipes.md")
	must(t, err)
	recipes, err := Parse(string(page))
	must(t, err)
	raw, err := os.ReadFile("testdata/writes.yaml")
	must(t, err)
	table, err := ReadTable(raw, recipes)
	must(t, err)
	p := start(t, recipes)
	for i := range table.Holders {
		p.prepare(t, table, i, recipes)
	}
	must(t, p.stack.AwaitGrants(t.Context()))
	p.awaitKinds(t)
	for i := range table.Holders {
		h := &table.Holders[i]
		t.Run(fmt.Sprintf("%s/%d", h.Recipe, i), func(t *testing.T) { p.try(t, table, i) })
	}
}

type plane struct {
	stack *stack.Stack
	admin *corpus.Wire
	// known are the kinds whose writes were tried as an administrator.
	known map[string]bool
}

// start starts a control plane with the barriers of all recipes, and the definitions that some of them need.
func start(t *testing.T, recipes []Recipe) *plane {
	t.Helper()
	bin, err := e2e.Build()
	must(t, err)
	dir := t.TempDir()
	for _, r := range recipes {
		for i, document := range r.Documents {
			must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d.yaml", r.Key, i)), []byte(document), 0o600))
		}
	}
	s, err := stack.Start(t.Context(), stack.Config{Bin: bin, Schemas: []string{dir}})
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	definitions, err := filepath.Glob("../../testdata/shared/crds/*.yaml")
	must(t, err)
	admin, err := s.User("admin", "system:masters")
	must(t, err)
	kubectl := s.Kubectl(admin)
	for _, file := range definitions {
		definition, err := s.Generate(t.Context(), "crd", "--in", file)
		must(t, err)
		if _, stderr, err := kubectl.Run(t.Context(), definition, "create", "-f", "-"); err != nil {
			t.Fatal(err, stderr)
		}
	}
	if _, stderr, err := kubectl.Run(t.Context(), "", "wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"); err != nil {
		t.Fatal(err, stderr)
	}
	w, err := corpus.NewWire(admin.Config)
	must(t, err)
	return &plane{stack: s, admin: w, known: map[string]bool{}}
}

// awaitKinds waits until fieldperm knows the kinds of the definitions and their barriers.
func (p *plane) awaitKinds(t *testing.T) {
	t.Helper()
	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	for kind, resource := range map[string]schema.GroupVersionResource{
		"Application":   {Group: "argoproj.io", Version: "v1alpha1", Resource: "applications"},
		"Kustomization": {Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"},
		"Widget":        widgets,
	} {
		must(t, p.stack.AwaitKind(t.Context(), resource, kind))
	}
	must(t, p.stack.AwaitBarrier(t.Context(), widgets, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "probe", "namespace": "default"},
		"spec": map[string]any{"dangerous": true},
	}}))
}

func name(i int) string { return fmt.Sprintf("holder-%d", i) }

// scenario has the data that the corpus needs to send a write.
func scenario(k *Kind, i int) *corpus.Scenario {
	object := maps.Clone(k.Object)
	metadata, _ := object["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	if metadata == nil {
		metadata = map[string]any{}
	}
	if metadata["name"] == nil {
		metadata["name"] = name(i)
	}
	object["metadata"] = metadata
	return &corpus.Scenario{Name: name(i), Resource: k.Resource, Kind: k.Kind, ClusterScoped: k.ClusterScoped, Object: object}
}

// prepare creates the object, the grants and the namespace of one holder.
func (p *plane) prepare(t *testing.T, table *Table, i int, recipes []Recipe) {
	t.Helper()
	h := &table.Holders[i]
	k := table.Kinds[h.Of]
	s := scenario(k, i)
	if !k.ClusterScoped {
		p.expect(t, http.MethodPost, "/api/v1/namespaces", map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name(i)}})
	}
	for _, write := range []corpus.Step{
		{User: "setup", Request: corpus.Request{Create: s.Object}},
		{User: "setup", Subresource: "status", Request: corpus.Request{Put: map[string]any{"status": s.Object["status"]}}},
	} {
		if write.Subresource != "" && s.Object["status"] == nil {
			continue
		}
		answer, err := s.Send(t.Context(), p.admin, &write, false, p.live)
		must(t, err)
		if answer.Code >= 300 {
			t.Fatalf("%s: %s", h.Recipe, answer.Body)
		}
	}
	at := slices.IndexFunc(recipes, func(r Recipe) bool { return r.Key == h.Recipe })
	rules := recipes[at].Rules
	if len(h.Rules) > 0 {
		rules = nil
		for _, n := range h.Rules {
			rules = append(rules, recipes[at].Rules[n])
		}
	}
	if len(h.Holds) > 0 {
		resources := []string{k.Resource.Resource}
		for _, w := range k.Writes {
			if w.Subresource != "" {
				resources = append(resources, k.Resource.Resource+"/"+w.Subresource)
			}
		}
		rules = []rbacv1.PolicyRule{{APIGroups: []string{k.Resource.Group}, Resources: resources, Verbs: h.Holds}}
	}
	client, err := kubernetes.NewForConfig(p.stack.Admin())
	must(t, err)
	meta := metav1.ObjectMeta{Name: name(i)}
	_, err = client.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	must(t, err)
	_, err = client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name(i)}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name(i)},
	}, metav1.CreateOptions{})
	must(t, err)
}

// try sends every write of the kind as the holder. An administrator can make all of them. Otherwise a refusal would prove nothing. A write
// is refused by fieldperm, by RBAC, or by a check of kube-apiserver, which answers that the object is invalid.
func (p *plane) try(t *testing.T, table *Table, i int) {
	h := &table.Holders[i]
	k := table.Kinds[h.Of]
	user, err := p.stack.User(name(i))
	must(t, err)
	holder, err := corpus.NewWire(user.Config)
	must(t, err)
	for _, write := range slices.Sorted(maps.Keys(k.Writes)) {
		w := k.Writes[write]
		if !p.known[h.Of] {
			if answer := p.send(t, p.admin, k, i, w); answer.Code >= 300 {
				t.Errorf("%q is no write that kube-apiserver takes: %s", write, answer.Body)
			} else if !p.changes(t, k, i, w, answer) {
				t.Errorf("%q changes nothing: kube-apiserver drops it", write)
			}
		}
		answer := p.send(t, holder, k, i, w)
		switch {
		case answer.Code >= 300 && answer.Code != http.StatusForbidden && !strings.Contains(answer.Status.Message, `forbidden: User "`+name(i)):
			t.Errorf("%q: got %d: %s", write, answer.Code, answer.Body)
		case h.Promised(write) && answer.Code >= 300:
			t.Errorf("%q is promised and refused: %s", write, answer.Status.Message)
		case !h.Promised(write) && answer.Code < 300:
			t.Errorf("%q is not promised and allowed", write)
		}
	}
	p.known[h.Of] = true
}

func (p *plane) send(t *testing.T, w *corpus.Wire, k *Kind, i int, write Write) *corpus.Answer {
	t.Helper()
	s := scenario(k, i)
	step := &corpus.Step{User: name(i), Subresource: write.Subresource, Request: write.Request}
	if write.Post != nil {
		path := s.Resource.Path(s.Namespace(), s.ObjectName(step), write.Subresource)
		answer, err := w.Do(t.Context(), http.MethodPost, path, url.Values{"dryRun": {metav1.DryRunAll}}, "application/json", write.Post)
		must(t, err)
		return answer
	}
	answer, err := s.Send(t.Context(), w, step, true, p.live)
	must(t, err)
	return answer
}

// changes reports whether a write changed more than the metadata that kube-apiserver writes by itself.
func (p *plane) changes(t *testing.T, k *Kind, i int, w Write, answer *corpus.Answer) bool {
	t.Helper()
	if w.Post != nil || w.Create != nil || w.Delete != nil {
		return true
	}
	s := scenario(k, i)
	path := s.Resource.Path(s.Namespace(), s.ObjectName(&corpus.Step{}))
	if w.Subresource == "scale" {
		path += "/scale"
	}
	before, err := p.live(path)
	must(t, err)
	after, err := decode(answer.Body)
	must(t, err)
	for _, object := range []map[string]any{before, after} {
		for _, field := range []string{"managedFields", "resourceVersion", "generation"} {
			unstructured.RemoveNestedField(object, "metadata", field)
		}
	}
	return !reflect.DeepEqual(before, after)
}

func (p *plane) live(path string) (map[string]any, error) {
	answer, err := p.admin.Do(context.Background(), http.MethodGet, path, nil, "", nil)
	if err != nil {
		return nil, err
	}
	if answer.Code >= 300 {
		return nil, fmt.Errorf("GET %s: %s", path, answer.Body)
	}
	return decode(answer.Body)
}

func decode(raw []byte) (map[string]any, error) {
	var out map[string]any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	err := decoder.Decode(&out)
	return out, err
}

func (p *plane) expect(t *testing.T, method, path string, body any) {
	t.Helper()
	answer, err := p.admin.Do(t.Context(), method, path, nil, "application/json", body)
	must(t, err)
	if answer.Code >= 300 {
		t.Fatalf("%s %s: %s", method, path, answer.Body)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
