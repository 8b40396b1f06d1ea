package bench

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// review is a body with its expected decision.
type review struct {
	subject
	body []byte
	// changes is the number of requirements that Diff returns.
	changes int
	// same says that structured-merge-diff finds no difference, because it ignores order (D3).
	same bool
}

// reviewed lists the reviews of BenchmarkReview. They are created when they are measured.
var reviewed = []struct {
	name string
	make func(testing.TB) review
}{
	// One field changes: .spec.replicas. Sizes are the sizes of the body, which holds two objects.
	{"1KiB", smallest},
	{"16KiB", func(tb testing.TB) review { return oneField(tb, 16<<10, 1, 3) }},
	{"1MiB", func(tb testing.TB) review { return oneField(tb, 1<<20, 66, 18) }},
	// 16 KiB.
	{"ten-fields", tenFields},
	{"no-change", noChange},
	{"everything", everything},
	// The size depends on the object.
	{"reordered-1000", reordered},
	{"configmap-1MiB", configMap},
	{"crd-2000-fields", customResource},
	{"managers-200", manyManagers},
}

// smallest is kubectl scale: two whole Deployments do not fit into 1 KiB.
func smallest(tb testing.TB) review {
	s := scales.by("scaler")
	return review{subject: s, body: s.review(tb, encoded(tb, scale(3)), encoded(tb, scale(4))), changes: 1}
}

// rounds are kubectl apply, the controllers, and kubectl patch of the replicas.
func rounds() []owner {
	replicas, revision := below(".spec.replicas"), below(`.metadata.annotations.deployment.kubernetes.io/revision`)
	return []owner{
		updates("kubectl-client-side-apply", "", but(below(".spec", ".metadata"), func(path string) bool { return replicas(path) || revision(path) })),
		updates("kube-controller-manager", "status", func(path string) bool { return revision(path) || strings.HasPrefix(path, ".status") }),
		updates("kubectl-patch", "", replicas),
	}
}

// edited returns a Deployment before and after an update by its last owner.
func edited(tb testing.TB, before, after shape, owners []owner, edit func(*appsv1.Deployment)) (old, object []byte) {
	tb.Helper()
	d := before.deployment()
	entries := managed(tb, deployments.kind, encoded(tb, d), owners...)
	d.ManagedFields = entries
	old = encoded(tb, d)
	next := after.deployment()
	next.ManagedFields = slices.Clone(entries)
	if edit != nil {
		next.Generation++
		next.ManagedFields[len(entries)-1].Time = new(changedAt())
		edit(next)
	}
	return old, encoded(tb, next)
}

// filled returns the shape whose review has size bytes, or the maximum for two equal objects: an annotation fills up the rest after the
// containers.
func filled(tb testing.TB, s shape, size int, make func(shape) review) review {
	tb.Helper()
	// The annotation itself, and its owner, take some bytes.
	s.notes = 1
	lacking := (size - len(make(s).body)) / 2
	if lacking < 0 {
		tb.Fatalf("%d containers of %d variables do not fit into %d bytes: make it fewer", s.containers, s.variables, size)
	}
	s.notes += lacking
	return make(s)
}

func oneField(tb testing.TB, size, containers, variables int) review {
	tb.Helper()
	return filled(tb, shape{containers: containers, variables: variables}, size, func(s shape) review {
		old, object := edited(tb, s, s, rounds(), func(d *appsv1.Deployment) { *d.Spec.Replicas++ })
		by := deployments.by("scaler")
		return review{subject: by, body: by.review(tb, old, object), changes: 1}
	})
}

// tenFields changes ten fields of the specification.
func tenFields(tb testing.TB) review {
	owners := []owner{updates("kube-controller-manager", "status", below(".status")), updates("deployer", "", below(".spec", ".metadata"))}
	return filled(tb, shape{containers: 1, variables: 3}, 16<<10, func(s shape) review {
		old, object := edited(tb, s, s, owners, func(d *appsv1.Deployment) {
			spec, pod := &d.Spec, &d.Spec.Template.Spec
			for _, number := range []*int32{spec.Replicas, spec.RevisionHistoryLimit, spec.ProgressDeadlineSeconds} {
				*number++
			}
			spec.Strategy.RollingUpdate.MaxSurge = new(intstr.FromInt32(1))
			*pod.TerminationGracePeriodSeconds++
			c := &pod.Containers[0]
			c.Image += "-canary"
			for i := range c.Env {
				c.Env[i].Value += "?canary=true"
			}
			c.Resources.Limits[corev1.ResourceMemory] = resource.MustParse("1Gi")
		})
		by := deployments.by("deployer")
		return review{subject: by, body: by.review(tb, old, object), changes: 10}
	})
}

// noChange is the update of a controller without a change.
func noChange(tb testing.TB) review {
	return filled(tb, shape{containers: 1, variables: 3}, 16<<10, func(s shape) review {
		old, object := edited(tb, s, s, rounds(), nil)
		by := deployments.by("scaler")
		return review{subject: by, body: by.review(tb, old, object), same: true}
	})
}

// everything changes everything except the keys, as the owner of all fields.
func everything(tb testing.TB) review {
	owners := []owner{updates("deployer", "", func(string) bool { return true })}
	return filled(tb, shape{containers: 1, variables: 3}, 16<<10, func(s shape) review {
		other := s
		other.edition = 1
		old, object := edited(tb, s, other, owners, func(*appsv1.Deployment) {})
		by := deployments.by("owner")
		return review{subject: by, body: by.review(tb, old, object), changes: 54}
	})
}

// reordered reverses the order of 1,000 variables of one container.
func reordered(tb testing.TB) review {
	s := shape{containers: 1, variables: 1000}
	owners := []owner{updates("deployer", "", below(".spec", ".metadata"))}
	old, object := edited(tb, s, s, owners, func(d *appsv1.Deployment) {
		slices.Reverse(d.Spec.Template.Spec.Containers[0].Env)
		d.ManagedFields[0].Time = new(madeAt()) // An order has no owner, so an API server sets no time.
	})
	by := deployments.by("deployer")
	return review{subject: by, body: by.review(tb, old, object), changes: 1}
}

// configMap is 1 MiB of files in 16 keys. One line of one file changes.
func configMap(tb testing.TB) review {
	const files, size = 16, 1 << 20
	c := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: "settings", Namespace: "shop", UID: "6f1c2a3e-6d1b-4f5e-9a51-0d7f3c9b2e10", ResourceVersion: "184467", CreationTimestamp: madeAt()},
		Data:       map[string]string{},
	}
	for f := range files {
		var lines strings.Builder
		for l := 0; lines.Len() < size/files-size/files/20; l++ { // Line ends take two bytes each in JSON.
			fmt.Fprintf(&lines, "shop.component-%02d.setting-%04d = \"value %d\"\n", f, l, l)
		}
		c.Data[fmt.Sprintf("app-%02d.properties", f)] = lines.String()
	}
	c.ManagedFields = managed(tb, configMaps.kind, encoded(tb, c), updates("kubectl-create", "", below(".data")))
	old := encoded(tb, c)
	c.Data["app-00.properties"] = strings.Replace(c.Data["app-00.properties"], "value 100\"", "value 101\"", 1)
	c.ManagedFields[0].Time = new(changedAt())
	by := configMaps.by("editor")
	return review{subject: by, body: by.review(tb, old, encoded(tb, c)), changes: 1}
}

func customResource(tb testing.TB) review {
	entries := managed(tb, panels.kind, encoded(tb, panel(3)), updates("manager", "", but(below(".spec"), below(".spec.replicas"))), updates("kubectl-patch", "", below(".spec.replicas")))
	old := encoded(tb, owning(panel(3), entries))
	entries[1].Time = new(changedAt())
	by := panels.by("scaler")
	return review{subject: by, body: by.review(tb, old, encoded(tb, owning(panel(4), entries))), changes: 1}
}

// manyManagers is an object with labels of 200 appliers, the largest number that an API server keeps separate.
func manyManagers(tb testing.TB) review {
	d := shape{}.deployment()
	owners := rounds()
	for i := range 200 - len(owners) {
		name := fmt.Sprintf("team-%03d.example.com/stage", i)
		d.Labels[name] = "blue"
		owners = append(owners, owner{
			metav1.ManagedFieldsEntry{Manager: fmt.Sprintf("team-%03d", i), Operation: metav1.ManagedFieldsOperationApply},
			func(path string) bool { return path == ".metadata.labels."+name },
		})
	}
	d.ManagedFields = managed(tb, deployments.kind, encoded(tb, d), owners...)
	old := encoded(tb, d)
	*d.Spec.Replicas++
	d.Generation++
	d.ManagedFields[2].Time = new(changedAt())
	by := deployments.by("scaler")
	return review{subject: by, body: by.review(tb, old, encoded(tb, d)), changes: 1}
}

// Every approach has the same result, and a body has the size in its name.
func TestReviews(t *testing.T) {
	d := newDesk(t)
	for _, c := range reviewed {
		t.Run(c.name, func(t *testing.T) {
			r := c.make(t)
			if want, sized := sizes[c.name]; sized && (len(r.body) > want || len(r.body) < want-2) {
				t.Errorf("has %d bytes, want %d", len(r.body), want)
			}
			for _, approach := range approaches {
				if err := approach.make(t, d, r)(t.Context()); err != nil {
					t.Errorf("%s: %v", approach.name, err)
				}
			}
		})
	}
}

// sizes are the sizes of bodies that are filled up.
var sizes = map[string]int{"16KiB": 16 << 10, "1MiB": 1 << 20, "ten-fields": 16 << 10, "no-change": 16 << 10, "everything": 16 << 10}
