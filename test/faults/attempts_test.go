//go:build integration

package faults

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/errors"
)

// kind is a kind of objects that the writers write.
type kind struct{ group, resource, object string }

var (
	deployments = kind{"apps/v1", "deployments", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"$NAME","labels":{"app":"x"}},"spec":{"replicas":1,"selector":{"matchLabels":{"app":"x"}},` +
		`"template":{"metadata":{"labels":{"app":"x"}},"spec":{"containers":[{"name":"main","image":"first"}]}}}}`}
	configMaps = kind{"v1", "configmaps", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"$NAME"},"data":{"mine":"first","other":"first"}}`}
	secrets    = kind{"v1", "secrets", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"$NAME"},"stringData":{"key":"first"}}`}
)

// object creates an object as the administrator and returns its path.
func (c *scene) object(t *testing.T, k kind, name string) string {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	remake := func(t *testing.T) {
		t.Helper()
		await(t, recoverWithin, func() error {
			// A forbidden write may have left a finalizer.
			_, _ = patch(path(k.group, k.resource, name), `{"metadata":{"finalizers":null}}`)(ctx, c.auditor.client, 0)
			if err := c.auditor.client.Delete().AbsPath(path(k.group, k.resource, name)).Do(ctx).Error(); err != nil && !errors.IsNotFound(err) {
				return err
			}
			_, err := create(path(k.group, k.resource, ""), replaceName(k.object, name))(ctx, c.auditor.client, 0)
			return err
		})
	}
	remake(t)
	c.remake = append(c.remake, remake)
	return path(k.group, k.resource, name)
}

const (
	image = `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"$X"}]}}}}`
	// applied is the head of a configuration that is applied to a Deployment whose name is in the path.
	appliedDeployment = `"apiVersion":"apps/v1","kind":"Deployment"`
	appliedConfigMap  = `"apiVersion":"v1","kind":"ConfigMap"`
)

// scalerAttempts are the attempts of a user with granular:scale, on one Deployment.
func scalerAttempts(at string) []attempt {
	return []attempt{
		{name: "patch replicas", may: true, do: patch(at, `{"spec":{"replicas":$N}}`)},
		{name: "patch image", do: patch(at, image)},
		{name: "put replicas", may: true, do: put(at, func(o map[string]any, n int) { within(o, "spec")["replicas"] = n%40 + 1 })},
		{name: "put replicas and label", do: put(at, func(o map[string]any, n int) {
			within(o, "spec")["replicas"] = n%40 + 1
			within(o, "metadata", "labels")["stray"] = fill("$X", n)
		})},
		{name: "apply replicas", may: true, do: apply(at, `{`+appliedDeployment+`,"spec":{"replicas":$N}}`)},
		{name: "apply replicas and image", do: apply(at, `{`+appliedDeployment+`,"spec":{"replicas":$N,"template":{"spec":{"containers":[{"name":"main","image":"$X"}]}}}}`)},
		{name: "patch scale", may: true, do: patch(at+"/scale", `{"spec":{"replicas":$N}}`)},
		{name: "patch label", do: patch(at, `{"metadata":{"labels":{"stray":"$X"}}}`)},
		{name: "patch annotation by status", do: patch(at+"/status", `{"metadata":{"annotations":{"stray":"$X"}}}`)},
		{name: "create", do: create(path("apps/v1", "deployments", ""), replaceName(deployments.object, "$X"))},
	}
}

// keeperAttempts are the attempts of a user with granular:datum(mine), on one ConfigMap.
func keeperAttempts(at string) []attempt {
	return []attempt{
		{name: "patch key", may: true, do: patch(at, `{"data":{"mine":"$N"}}`)},
		{name: "patch other key", do: patch(at, `{"data":{"other":"$X"}}`)},
		{name: "put key", may: true, do: put(at, func(o map[string]any, n int) { within(o, "data")["mine"] = fill("$N", n) })},
		{name: "put both keys", do: put(at, func(o map[string]any, n int) {
			within(o, "data")["mine"], within(o, "data")["other"] = fill("$N", n), fill("$X", n)
		})},
		{name: "apply key", may: true, do: apply(at, `{`+appliedConfigMap+`,"data":{"mine":"$N"}}`)},
		{name: "apply new key", do: apply(at, `{`+appliedConfigMap+`,"data":{"mine":"$N","stray":"$X"}}`)},
		{name: "patch finalizer", do: patch(at, `{"metadata":{"finalizers":["example.com/$X"]}}`)},
		{name: "create", do: create(path("v1", "configmaps", ""), replaceName(configMaps.object, "$X"))},
	}
}

// editorAttempts are the attempts of a user with generic verbs on a resource without barriers.
func editorAttempts(at string) []attempt {
	return []attempt{
		{name: "put image", may: true, do: put(at, func(o map[string]any, n int) {
			within(o, "spec", "template", "spec")["containers"] = []any{map[string]any{"name": "main", "image": fill("image-$N", n)}}
		})},
		{name: "create and delete", may: true, do: createAndDelete(path("v1", "configmaps", ""), replaceName(configMaps.object, "made-$N"), "made-$N")},
	}
}

// guardedAttempts are the attempts of a user with generic verbs on a resource with a barrier.
func guardedAttempts(at string) []attempt {
	return []attempt{
		{name: "patch data", may: true, do: patch(at, `{"stringData":{"key":"$N"}}`)},
		{name: "patch guarded label", barrier: true, do: patch(at, `{"metadata":{"labels":{"guarded.example.com/by":"$X"}}}`)},
	}
}

// within returns the object at a path, and creates it if it is missing.
func within(object map[string]any, path ...string) map[string]any {
	for _, name := range path {
		next, ok := object[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			object[name] = next
		}
		object = next
	}
	return object
}

func replaceName(body, name string) string { return strings.ReplaceAll(body, "$NAME", name) }
