//go:build integration

package asks

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/internal/plugin"
)

type difference struct {
	Allowed bool
	Objects []struct {
		Result string
	}
}

// diff draws a manifest that changes one to three fields, asks diff about it, and applies it as the user.
func (c counts) diff(t *testing.T, w *world, r *rand.Rand) {
	t.Helper()
	u := &w.users[r.IntN(len(w.users))]
	o := &w.objects[r.IntN(len(w.objects))]
	var object map[string]any
	must(t, yaml.Unmarshal([]byte(o.Manifest), &object))
	object = runtime.DeepCopyJSON(jsonOf(t, object))
	var paths []string
	for range 1 + r.IntN(3) {
		f := &o.Fields[r.IntN(len(o.Fields))]
		must(t, f.Set(object, runtime.DeepCopyJSONValue(f.Values[r.IntN(len(f.Values))])))
		paths = append(paths, f.Path)
	}
	manifest, err := json.Marshal(object)
	must(t, err)
	args := []string{"apply", "-f", "-"}
	asks := append(w.as(u), "-f", "-")
	if r.IntN(2) == 0 {
		args = append(args, "--server-side", "--force-conflicts")
		asks = append(asks, "--server-side", "--force-conflicts")
	}
	var answer difference
	ask(t, plugin.NewDiffCommand, &answer, string(manifest), asks...)
	if len(answer.Objects) != 1 {
		t.Fatalf("diff answers about %d objects", len(answer.Objects))
	}
	user, err := w.stack.User(u.Name, u.Groups...)
	must(t, err)
	before := w.object(o)
	_, stderr, err := w.stack.Kubectl(user).Run(t.Context(), string(manifest), args...)
	allowed := err == nil
	if !allowed && !strings.Contains(stderr, "orbidden") {
		t.Fatalf("%s: %v %s: %v: %s", u.Name, args, manifest, err, stderr)
	}
	says := "no"
	if answer.Allowed {
		says = "yes"
	}
	c["diff by "+answer.Objects[0].Result]++
	c.judge(t, "diff", fmt.Sprintf("%s: %v of %s %v: %s\n%s", u.Name, args, o.Name, paths, stderr, manifest), says, allowed)
	if !allowed {
		return
	}
	before.SetResourceVersion(w.object(o).GetResourceVersion())
	_, err = w.client.Resource(resourceOf(o)).Namespace(Namespace).Update(t.Context(), before, metav1.UpdateOptions{})
	must(t, err)
}

// jsonOf returns a value with the numbers of an API server.
func jsonOf(t *testing.T, object map[string]any) map[string]any {
	t.Helper()
	raw, err := yaml.Marshal(object)
	must(t, err)
	var out map[string]any
	raw, err = yaml.YAMLToJSON(raw)
	must(t, err)
	must(t, utiljson.Unmarshal(raw, &out))
	return out
}
