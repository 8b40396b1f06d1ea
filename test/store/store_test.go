//go:build integration

package store

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/fieldperm/fieldperm/test/cluster"
)

// Every change that the API server has answered is in the log: created, changed, not changed, deleted.
func TestStore_SeesEveryWrite(t *testing.T) {
	ctx := t.Context()
	plane, err := cluster.Start(ctx, cluster.Config{Dir: t.TempDir(), ExtraArgs: ServerFlags()})
	must(t, err)
	t.Cleanup(func() { must(t, plane.Stop()) })
	s, err := Open(ctx, plane.EtcdURL())
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	log, err := s.Follow(ctx, 0)
	must(t, err)
	t.Cleanup(log.Close)
	client, err := kubernetes.NewForConfig(plane.Admin())
	must(t, err)
	maps := client.CoreV1().ConfigMaps("default")
	const key = "/registry/configmaps/default/settings"

	// The API server writes objects of its own at the same time.
	next := func() []Change {
		t.Helper()
		changes, err := log.Next(ctx)
		must(t, err)
		return slices.DeleteFunc(changes, func(c Change) bool { return c.Key != key })
	}
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"a": "1"}}
	created, err := maps.Create(ctx, settings, metav1.CreateOptions{})
	must(t, err)
	changes := next()
	if len(changes) != 1 || changes[0].Before != nil || data(t, changes[0].After) != "1" {
		t.Fatalf("created: %+v", changes)
	}
	first := changes[0].Revision

	_, err = maps.Update(ctx, created, metav1.UpdateOptions{})
	must(t, err)
	if changes := next(); len(changes) != 0 {
		t.Errorf("an update that changes nothing: %+v", changes)
	}
	created.Data["a"] = "2"
	_, err = maps.Update(ctx, created, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	must(t, err)
	if changes := next(); len(changes) != 0 {
		t.Errorf("a dry run: %+v", changes)
	}
	_, err = maps.Update(ctx, created, metav1.UpdateOptions{})
	must(t, err)
	if changes := next(); len(changes) != 1 || data(t, changes[0].Before) != "1" || data(t, changes[0].After) != "2" {
		t.Errorf("changed: %+v", changes)
	}

	now, err := s.Get(ctx, key, 0)
	must(t, err)
	then, err := s.Get(ctx, key, first)
	must(t, err)
	if now == nil || then == nil || data(t, now.Value) != "2" || data(t, then.Value) != "1" || now.Created != first {
		t.Errorf("now %+v, then %+v", now, then)
	}
	keys, _, err := s.Keys(ctx, Prefix+"configmaps/default/")
	must(t, err)
	if keys[key] != now.Revision {
		t.Errorf("keys: %v; want %q at %d", keys, key, now.Revision)
	}
	entries, _, err := s.List(ctx, Prefix+"configmaps/default/")
	must(t, err)
	if !slices.ContainsFunc(entries, func(e Entry) bool { return e.Key == key && e.Revision == now.Revision }) {
		t.Errorf("entries: %+v", entries)
	}

	must(t, maps.Delete(ctx, "settings", metav1.DeleteOptions{}))
	if changes := next(); len(changes) != 1 || changes[0].After != nil || data(t, changes[0].Before) != "2" {
		t.Errorf("deleted: %+v", changes)
	}
	gone, err := s.Get(ctx, key, 0)
	if err != nil || gone != nil {
		t.Errorf("deleted: %+v, %v", gone, err)
	}
}

func data(t *testing.T, value []byte) string {
	t.Helper()
	object, err := Decode(value)
	must(t, err)
	text, _ := object["data"].(map[string]any)["a"].(string)
	return text
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
