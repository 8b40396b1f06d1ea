//go:build integration

package contrib

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/test/corpus"
	"github.com/fieldperm/fieldperm/test/e2e"
	"github.com/fieldperm/fieldperm/test/stack"
	"github.com/fieldperm/fieldperm/test/store"
)

func TestMain(m *testing.M) {
	flag.Parse()
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// useCase is a user with the rules of README.md, and merge patches that are allowed and refused.
type useCase struct {
	User     string            `json:"user"`
	Object   string            `json:"object"`
	Verbs    []string          `json:"verbs"`
	Allowed  map[string]change `json:"allowed"`
	Refused  map[string]change `json:"refused"`
	UseCases []int             `json:"useCases"`
}

type change = map[string]any

// object is an object of testdata/usecases.yaml and where it is.
type object struct {
	Resource string         `json:"resource"`
	Version  string         `json:"version"`
	Group    string         `json:"group"`
	Kind     string         `json:"kind"`
	Spec     map[string]any `json:"spec"`
}

func (o *object) path(name string) string {
	return fmt.Sprintf("/apis/%s/%s/namespaces/default/%s/%s", o.Group, o.Version, o.Resource, name)
}

func (o *object) key(name string) string {
	return fmt.Sprintf("%s%s/%s/default/%s", store.Prefix, o.Group, o.Resource, name)
}

// TestContrib_UseCases: the catalogues are applied with kubectl before the definitions are installed. Then the holder of each Role of
// README.md can make the changes that it promises and no other. What etcd stores is the judge.
func TestContrib_UseCases(t *testing.T) {
	var file struct {
		Objects map[string]*object `json:"objects"`
		Users   []useCase          `json:"users"`
	}
	raw, err := os.ReadFile("testdata/usecases.yaml")
	must(t, err)
	must(t, yaml.UnmarshalStrict(raw, &file))
	c := startCluster(t)
	c.kubectl(t, "", "apply", "--server-side", "-f", filepath.Join(directory, "argo-cd.yaml"), "-f", filepath.Join(directory, "flux.yaml"))
	for _, name := range []string{"applications.argoproj.io", "helmreleases.helm.toolkit.fluxcd.io"} {
		c.await(t, name, "Compiled", "Unmatched")
	}
	c.install(t, "argo-cd.yaml", "flux.yaml")
	for _, o := range file.Objects {
		c.await(t, o.Resource+"."+o.Group, "Compiled", "Compiled")
	}
	for i := range file.Users {
		c.prepare(t, &file.Users[i], file.Objects[file.Users[i].Object])
	}
	must(t, c.stack.AwaitGrants(t.Context()))
	for i := range file.Users {
		u := &file.Users[i]
		o := file.Objects[u.Object]
		t.Run(u.User, func(t *testing.T) {
			c.letIn(t, u, o)
			for _, name := range slices.Sorted(maps.Keys(u.Refused)) {
				c.try(t, u, o, name, u.Refused[name], http.StatusForbidden)
			}
			for _, name := range slices.Sorted(maps.Keys(u.Allowed)) {
				c.try(t, u, o, name, u.Allowed[name], http.StatusOK)
			}
		})
	}
	t.Run("other versions", c.otherVersions)
}

// letIn returns when fieldperm and the API server know the kind, its verbs and the user: a dry run of the first allowed change succeeds.
func (c *plane) letIn(t *testing.T, u *useCase, o *object) {
	t.Helper()
	first := u.Allowed[slices.Min(slices.Collect(maps.Keys(u.Allowed)))]
	w := c.wire(t, u.User)
	var last []byte
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		answer, err := w.Do(ctx, http.MethodPatch, o.path(u.User), url.Values{"dryRun": {"All"}}, "application/merge-patch+json", first)
		if err != nil {
			return false, err
		}
		last = answer.Body
		return answer.Code == http.StatusOK, nil
	})
	if err != nil {
		t.Fatalf("%v: %s", err, last)
	}
}

// try makes a change as the user, and compares what etcd holds before and after.
func (c *plane) try(t *testing.T, u *useCase, o *object, name string, patch change, code int) {
	t.Helper()
	before, version := c.stored(t, o, u.User)
	answer, err := c.wire(t, u.User).Do(t.Context(), http.MethodPatch, o.path(u.User), nil, "application/merge-patch+json", patch)
	must(t, err)
	after, now := c.stored(t, o, u.User)
	if answer.Code != code {
		t.Errorf("%s: got %d, want %d: %s", name, answer.Code, code, answer.Body)
	}
	want := before
	if code == http.StatusOK {
		want = merged(before, patch).(map[string]any)
	}
	if !reflect.DeepEqual(content(after), content(want)) || code != http.StatusOK && now != version {
		t.Errorf("%s: etcd holds %v, want %v", name, content(after), content(want))
	}
}

// content is what a user changes of a stored object.
func content(object map[string]any) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	return map[string]any{"spec": object["spec"], "operation": object["operation"], "annotations": metadata["annotations"]}
}

// merged is a merge patch (RFC 7386).
func merged(target, patch any) any {
	fields, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	out, _ := target.(map[string]any)
	out = maps.Clone(out)
	if out == nil {
		out = map[string]any{}
	}
	for key, value := range fields {
		if value == nil {
			delete(out, key)
		} else {
			out[key] = merged(out[key], value)
		}
	}
	return out
}

type plane struct {
	stack *stack.Stack
	store *store.Store
}

// startCluster starts a control plane. fieldperm reads a catalogue of a project that is not installed from a file.
func startCluster(t *testing.T) *plane {
	t.Helper()
	bin, err := e2e.Build()
	must(t, err)
	s, err := stack.Start(t.Context(), stack.Config{Bin: bin, Schemas: []string{filepath.Join(directory, "keda.yaml")}})
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	etcd, err := store.Open(t.Context(), s.EtcdURL())
	must(t, err)
	t.Cleanup(func() { must(t, etcd.Close()) })
	c := &plane{stack: s, store: etcd}
	c.kubectl(t, "", "apply", "--server-side", "-f", "../../config/crd")
	c.kubectl(t, "", "wait", "--for=condition=Established", "--timeout=30s", "-f", "../../config/crd")
	return c
}

// install installs the definitions of projects, in the version that was reviewed.
func (c *plane) install(t *testing.T, files ...string) {
	t.Helper()
	var all bytes.Buffer
	for _, p := range readProjects(t) {
		if slices.Contains(files, p.File) {
			for _, d := range p.definitions(t, 0, p.Variants[0]) {
				fmt.Fprintf(&all, "---\n%s\n", d.raw)
			}
		}
	}
	c.kubectl(t, all.String(), "create", "-f", "-")
	c.eventually(t, "wait", "--for=condition=Established", "--timeout=30s", "crd", "--all")
}

// run runs kubectl as an administrator.
func (c *plane) run(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	admin, err := c.stack.User("admin", "system:masters")
	must(t, err)
	return c.stack.Kubectl(admin).Run(context.WithoutCancel(t.Context()), "", args...)
}

// kubectl runs kubectl as an administrator, with input, and fails if it does.
func (c *plane) kubectl(t *testing.T, stdin string, args ...string) {
	t.Helper()
	admin, err := c.stack.User("admin", "system:masters")
	must(t, err)
	if _, stderr, err := c.stack.Kubectl(admin).Run(context.WithoutCancel(t.Context()), stdin, args...); err != nil {
		t.Fatal(err, stderr)
	}
}

// eventually repeats a kubectl wait, which fails at once on an object that has no conditions yet.
func (c *plane) eventually(t *testing.T, args ...string) {
	t.Helper()
	must(t, wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		_, stderr, err := c.run(t, args...)
		if err != nil && !strings.Contains(stderr, "error: <nil>") && !strings.Contains(stderr, "accessor error") {
			return false, fmt.Errorf("%w: %s", err, stderr)
		}
		return err == nil, nil
	}))
}

// await waits for the reason of a condition of a catalogue's object.
func (c *plane) await(t *testing.T, resource, condition, reason string) {
	t.Helper()
	c.eventually(t, "wait", `--for=jsonpath={.status.conditions[?(@.type=="`+condition+`")].reason}=`+reason, "--timeout=30s", "permissionschema/contrib."+resource)
}

// prepare creates an object with the user's name, and the user's Role.
func (c *plane) prepare(t *testing.T, u *useCase, o *object) {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"apiVersion": o.Group + "/" + o.Version, "kind": o.Kind, "metadata": map[string]any{"name": u.User, "namespace": "default"}, "spec": o.Spec,
	})
	must(t, err)
	c.kubectl(t, string(body), "create", "-f", "-")
	client, err := kubernetes.NewForConfig(c.stack.Admin())
	must(t, err)
	meta := metav1.ObjectMeta{Name: u.User, Namespace: "default"}
	_, err = client.RbacV1().Roles("default").Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{o.Group}, Resources: []string{o.Resource}, Verbs: append(slices.Clone(u.Verbs), "get")},
	}}, metav1.CreateOptions{})
	must(t, err)
	_, err = client.RbacV1().RoleBindings("default").Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: u.User}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: u.User},
	}, metav1.CreateOptions{})
	must(t, err)
}

func (c *plane) wire(t *testing.T, name string) *corpus.Wire {
	t.Helper()
	user, err := c.stack.User(name)
	must(t, err)
	w, err := corpus.NewWire(user.Config)
	must(t, err)
	return w
}

// stored returns an object as etcd holds it, and the revision of its last change.
func (c *plane) stored(t *testing.T, o *object, name string) (map[string]any, int64) {
	t.Helper()
	entry, err := c.store.Get(t.Context(), o.key(name), 0)
	must(t, err)
	if entry == nil {
		t.Fatalf("etcd has no %s", strings.TrimPrefix(o.key(name), store.Prefix))
	}
	out, err := store.Decode(entry.Value)
	must(t, err)
	return out, entry.Revision
}
