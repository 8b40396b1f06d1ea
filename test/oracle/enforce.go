package oracle

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

// drawGuards draws schemas and sets and waits until they are in force. With static manifests the guards of the start stay in force.
func (w *world) drawGuards(ctx context.Context, d *draw) error {
	if w.static != nil {
		return nil
	}
	if err := w.compile(w.documents(nil)); err != nil {
		return err
	}
	g, err := w.guards(d)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(w.stack.Admin())
	if err != nil {
		return err
	}
	before := w.inForce
	w.inForce, w.sets = &guards{}, nil
	for _, one := range g.schemas {
		ok, err := w.enforce(ctx, client, "permissionschemas", one)
		if err != nil {
			return err
		}
		if ok {
			w.inForce.schemas = append(w.inForce.schemas, one)
		}
	}
	// A schema may take away the verb that a set names. fieldperm refuses such a set only once it has read the schema.
	for _, one := range w.inForce.schemas {
		if err := awaitCondition(ctx, client, "permissionschemas", one.Name, v1alpha1.ConditionCompiled, func(map[string]any) bool { return true }); err != nil {
			return err
		}
	}
	for _, one := range g.sets {
		ok, err := w.enforce(ctx, client, "uncoveredpermissionsets", one.object)
		if err != nil {
			return err
		}
		if ok {
			w.inForce.sets = append(w.inForce.sets, one)
		}
	}
	if before != nil {
		if err := w.withdraw(ctx, client, before); err != nil {
			return err
		}
	}
	var empty []string
	for resource, names := range w.inForce.names() {
		for _, name := range names {
			guards, err := awaitEnforced(ctx, client, resource, name)
			if err != nil {
				return err
			}
			if !guards {
				empty = append(empty, name)
			}
		}
	}
	if err := w.withdrawEmpty(ctx, client, empty); err != nil {
		return err
	}
	w.sets = w.inForce.sets
	return w.compile(w.documents(w.inForce))
}

func (g *guards) names() map[string][]string {
	out := map[string][]string{}
	for _, one := range g.schemas {
		out["permissionschemas"] = append(out["permissionschemas"], one.Name)
	}
	for _, one := range g.sets {
		out["uncoveredpermissionsets"] = append(out["uncoveredpermissionsets"], one.object.Name)
	}
	return out
}

func fieldpermResource(name string) runtimeschema.GroupVersionResource {
	return v1alpha1.GroupVersion.WithResource(name)
}

// enforce creates an object of fieldperm. If fieldperm refuses the object, the refusal is counted and the object left out.
func (w *world) enforce(ctx context.Context, client dynamic.Interface, resource string, object any) (bool, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return false, err
	}
	delete(content, "status")
	_, err = client.Resource(fieldpermResource(resource)).Create(ctx, &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
	if err != nil {
		w.table.add(w.table.guards, resource+" refused: "+short(err.Error()))
		return false, nil
	}
	w.table.add(w.table.guards, resource+" in force")
	return true, nil
}

func (w *world) withdraw(ctx context.Context, client dynamic.Interface, g *guards) error {
	for resource, names := range g.names() {
		for _, name := range names {
			if err := client.Resource(fieldpermResource(resource)).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// withdrawEmpty deletes sets that guard nothing: fieldperm accepted them before it read that a schema of this epoch replaces their verbs, or
// that the schemas of the epoch before, which had their verbs, are gone. Any other object that guards nothing is an error.
func (w *world) withdrawEmpty(ctx context.Context, client dynamic.Interface, names []string) error {
	gone := &guards{}
	for _, name := range names {
		i := slices.IndexFunc(w.inForce.sets, func(one *set) bool { return one.object.Name == name })
		if i < 0 {
			return fmt.Errorf("%q is in force and guards nothing, although it is no set", name)
		}
		gone.sets = append(gone.sets, w.inForce.sets[i])
		w.inForce.sets = slices.Delete(w.inForce.sets, i, i+1)
		w.table.add(w.table.guards, "uncoveredpermissionsets withdrawn: no schema has their verbs any more")
	}
	return w.withdraw(ctx, client, gone)
}

// awaitEnforced waits until fieldperm says that every kube-apiserver asks it about every barrier of the object, or that the object guards nothing.
func awaitEnforced(ctx context.Context, client dynamic.Interface, resource, name string) (guards bool, err error) {
	err = awaitCondition(ctx, client, resource, name, v1alpha1.ConditionEnforced, func(c map[string]any) bool {
		guards = c["reason"] != v1alpha1.ReasonFaulty && c["reason"] != v1alpha1.ReasonNothingGuarded
		return c["status"] == "True" || !guards || c["reason"] == v1alpha1.ReasonNoBarriers || c["reason"] == v1alpha1.ReasonNotDenying
	})
	return guards, err
}

// awaitCondition waits until the object has a condition of the type that is as wanted. The error has all conditions that were last seen.
func awaitCondition(ctx context.Context, client dynamic.Interface, resource, name, conditionType string, wanted func(map[string]any) bool) error {
	var conditions []any
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		object, err := client.Resource(fieldpermResource(resource)).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		conditions, _, _ = unstructured.NestedSlice(object.Object, "status", "conditions")
		for _, item := range conditions {
			if c, _ := item.(map[string]any); c["type"] == conditionType {
				return wanted(c), nil
			}
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("%s %q: waiting for %s: %v: %w", resource, name, conditionType, conditions, err)
	}
	return nil
}
