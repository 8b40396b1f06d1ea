package review

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/load"
	"github.com/fieldperm/fieldperm/test/schematest"
)

func (f *fixture) get(caller user.Info, method, query string, header ...string) *httptest.ResponseRecorder {
	return f.ask(f.PermissionsHandler(), caller, method, query, header...)
}

// ask sends a request to a handler, which caches its responses.
func (f *fixture) ask(handler http.Handler, caller user.Info, method, query string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "/permissions"+query, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	if caller != nil {
		r = r.WithContext(request.WithUser(r.Context(), caller))
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

type listing struct {
	Kinds []struct {
		Group, Version, Kind string
		Verbs                []struct {
			Verb, Parameter  string
			Uncovered, Apart bool
			Powers           []string
			Paths            []string
		}
	}
}

func (f *fixture) list(t *testing.T, query string) listing {
	t.Helper()
	w := f.get(named("carol"), http.MethodGet, query)
	expect(t, w, http.StatusOK, `{"kinds":[`)
	var out listing
	d := json.NewDecoder(w.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestPermissionsListsEveryKindInOrder(t *testing.T) {
	f := newFixture(t)
	all := f.list(t, "")
	if got, want := len(all.Kinds), len(schematest.Schema(t).Kinds()); got != want {
		t.Errorf("%d kinds, want %d", got, want)
	}
	for i, k := range all.Kinds {
		if i > 0 && (k.Group < all.Kinds[i-1].Group || k.Group == all.Kinds[i-1].Group && k.Kind < all.Kinds[i-1].Kind) {
			t.Errorf("%s/%s stands after %s/%s", k.Group, k.Kind, all.Kinds[i-1].Group, all.Kinds[i-1].Kind)
		}
		if len(k.Verbs) == 0 || k.Verbs[0].Verb != "granular:*" || !slices.Equal(k.Verbs[0].Paths, []string{""}) {
			t.Errorf("%s does not begin with the root's verb: %+v", k.Kind, k.Verbs)
		}
		for j, v := range k.Verbs {
			if j > 0 && v.Verb < k.Verbs[j-1].Verb || !slices.IsSorted(v.Paths) || len(v.Paths) == 0 {
				t.Errorf("%s: verb %d is out of order: %+v", k.Kind, j, v)
			}
			if (v.Parameter != "") != strings.HasSuffix(v.Verb, v.Parameter+")") {
				t.Errorf("%s: verb %q, parameter %q", k.Kind, v.Verb, v.Parameter)
			}
		}
	}
	if first, second := f.get(named("carol"), http.MethodGet, ""), newFixture(t).get(named("alice"), http.MethodGet, ""); first.Body.String() != second.Body.String() {
		t.Error("two servers with one schema differ")
	}
}

func TestPermissionsSelects(t *testing.T) {
	f := newFixture(t)
	for query, want := range map[string]func(group, version, kind string) bool{
		"?group=apps":                            func(group, _, _ string) bool { return group == "apps" },
		"?group=":                                func(group, _, _ string) bool { return group == "" },
		"?kind=Deployment":                       func(_, _, kind string) bool { return kind == "Deployment" },
		"?version=v1beta1":                       func(_, version, _ string) bool { return version == "v1beta1" },
		"?group=apps&version=v1&kind=Deployment": func(group, version, kind string) bool { return group+version+kind == "appsv1Deployment" },
	} {
		got := f.list(t, query)
		for _, k := range got.Kinds {
			if !want(k.Group, k.Version, k.Kind) {
				t.Errorf("%s has %+v", query, k)
			}
		}
		wanted := 0
		for _, k := range schematest.Schema(t).Kinds() {
			if want(k.Group, k.Version, k.Kind) {
				wanted++
			}
		}
		if len(got.Kinds) != wanted || wanted == 0 {
			t.Errorf("%s has %d kinds, want %d", query, len(got.Kinds), wanted)
		}
	}
	deployment := f.list(t, "?group=apps&version=v1&kind=Deployment").Kinds[0]
	for verb, path := range map[string]string{"granular:scale": ".spec.replicas", "granular:image(containerName)": ".spec.template.spec.containers[*].image"} {
		if !slices.ContainsFunc(deployment.Verbs, func(v struct {
			Verb, Parameter  string
			Uncovered, Apart bool
			Powers           []string
			Paths            []string
		}) bool {
			return v.Verb == verb && slices.Contains(v.Paths, path) && !v.Uncovered
		}) {
			t.Errorf("Deployment has no %s at %s: %+v", verb, path, deployment.Verbs)
		}
	}
}

// Fields may share nodes of a schema. Each field that leads to a shared node is listed.
func TestPermissionsListsEveryPath(t *testing.T) {
	pod := newFixture(t).list(t, "?group=&version=v1&kind=Pod").Kinds[0]
	for verb, paths := range map[string][]string{
		"granular:probes(containerName)":     {".spec.containers[*].livenessProbe", ".spec.containers[*].readinessProbe", ".spec.initContainers[*].startupProbe"},
		"granular:image(containerName)":      {".spec.containers[*].image", ".spec.ephemeralContainers[*].image", ".spec.initContainers[*].image"},
		"granular:label(prefix of labelKey)": {".metadata.labels[*]"},
	} {
		var got []string
		for _, v := range pod.Verbs {
			if v.Verb == verb {
				got = v.Paths
			}
		}
		for _, path := range paths {
			if !slices.Contains(got, path) {
				t.Errorf("%s is at %q and not at %s", verb, got, path)
			}
		}
	}
}

func TestC2_PermissionsDistinguishesBarriers(t *testing.T) {
	s := schematest.Schema(t, schematest.File(t, "../../cmd/kubectl-fieldperm/testdata/widget-crd.yaml"))
	f := newFixture(t)
	f.Schema = func() *schema.Schema { return s }
	barriers := 0
	for _, k := range f.list(t, "?kind=Widget").Kinds {
		for _, v := range k.Verbs {
			if v.Uncovered {
				barriers++
			}
		}
	}
	if barriers != 1 {
		t.Errorf("%d barriers, want the one of widget-crd.yaml", barriers)
	}
}

func TestPermissionsCodes(t *testing.T) {
	failing, _ := load.Offline([]string{"testdata/faulty.yaml"})
	for name, test := range map[string]struct {
		caller        user.Info
		method, query string
		schema        *schema.Schema
		code          int
		want          string
	}{
		"nobody":             {nil, http.MethodGet, "", schematest.Schema(t), http.StatusUnauthorized, "caller is not authenticated"},
		"POST":               {named("carol"), http.MethodPost, "", schematest.Schema(t), http.StatusMethodNotAllowed, "use GET"},
		"unknown kind":       {named("carol"), http.MethodGet, "?kind=Deploymint", schematest.Schema(t), http.StatusNotFound, `no kind of kind "Deploymint"`},
		"group in the core":  {named("carol"), http.MethodGet, "?group=&kind=Deployment", schematest.Schema(t), http.StatusNotFound, "GET /permissions lists all"},
		"unknown parameter":  {named("carol"), http.MethodGet, "?kinds=Deployment", schematest.Schema(t), http.StatusBadRequest, "use group, version and kind"},
		"parameter twice":    {named("carol"), http.MethodGet, "?kind=Pod&kind=Deployment", schematest.Schema(t), http.StatusBadRequest, "give it once"},
		"no schema yet":      {named("carol"), http.MethodGet, "", nil, http.StatusServiceUnavailable, "try again"},
		"kind with a fault":  {named("carol"), http.MethodGet, "?group=apps&kind=Deployment", failing, http.StatusServiceUnavailable, "Kind=Deployment: a document about the kind is faulty: an administrator finds"},
		"kinds of the empty": {named("carol"), http.MethodGet, "", &schema.Schema{}, http.StatusOK, `{"kinds":[]}`},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.Schema = func() *schema.Schema { return test.schema }
			w := f.get(test.caller, test.method, test.query)
			expect(t, w, test.code, test.want)
			if allow := w.Header().Get("Allow"); (allow == "GET, HEAD") != (test.code == http.StatusMethodNotAllowed) {
				t.Errorf("Allow is %q", allow)
			}
		})
	}
	expect(t, (&fixture{}).get(named("carol"), http.MethodGet, ""), http.StatusServiceUnavailable, "try again")
}

func TestPermissionsAreSentOnceForEachSchema(t *testing.T) {
	f := newFixture(t)
	first := f.get(named("carol"), http.MethodGet, "")
	tag := first.Header().Get("ETag")
	if w := f.get(named("carol"), http.MethodGet, "", "If-None-Match", tag); w.Code != http.StatusNotModified || w.Body.Len() > 0 {
		t.Errorf("the same again: %d, %d bytes", w.Code, w.Body.Len())
	}
	if w := f.get(nil, http.MethodGet, "", "If-None-Match", tag); w.Code != http.StatusUnauthorized {
		t.Errorf("an unauthenticated caller with the tag: %d", w.Code)
	}
	if w := f.get(named("carol"), http.MethodHead, ""); w.Code != http.StatusOK || w.Body.Len() > 0 || w.Header().Get("ETag") != tag {
		t.Errorf("HEAD: %d, %d bytes, tag %q", w.Code, w.Body.Len(), w.Header().Get("ETag"))
	}
	if w := f.get(named("carol"), http.MethodGet, "?group=apps", "If-None-Match", tag); w.Code != http.StatusOK {
		t.Errorf("a part by the tag of the whole: %d", w.Code)
	}
}

// While the schema changes, a response is completely of one of the two schemas.
func TestPermissionsFollowTheSchema(t *testing.T) {
	more := schematest.Schema(t, schematest.File(t, "../../cmd/kubectl-fieldperm/testdata/widget-crd.yaml"))
	var lock sync.Mutex
	current := schematest.Schema(t)
	f := newFixture(t)
	f.Schema = func() *schema.Schema {
		lock.Lock()
		defer lock.Unlock()
		return current
	}
	handler := f.PermissionsHandler()
	ask := func() string { return f.ask(handler, named("carol"), http.MethodGet, "?kind=Widget").Body.String() }
	if got := ask(); !strings.Contains(got, "there is no kind") {
		t.Errorf("before: %s", got)
	}
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 5 {
				if got := ask(); !strings.Contains(got, "there is no kind") && !strings.Contains(got, `"kind":"Widget"`) {
					t.Errorf("meanwhile: %s", got)
				}
			}
		})
	}
	lock.Lock()
	current = more
	lock.Unlock()
	wait.Wait()
	if got := ask(); !strings.Contains(got, `"kind":"Widget"`) {
		t.Errorf("after: %s", got)
	}
}
