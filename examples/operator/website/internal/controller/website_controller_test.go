package controller

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "github.com/fieldperm/fieldperm/examples/operator/website/api/v1"
)

// create creates a website as an administrator, and waits for the operator.
func create(t *testing.T, name string) (client.Client, *webv1.Website) {
	t.Helper()
	admin := as(t, "admin", "system:masters")
	site := &webv1.Website{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: webv1.WebsiteSpec{Image: "shop:1"}}
	if err := admin.Create(t.Context(), site); err != nil {
		t.Fatal(err)
	}
	eventually(t, admin, site, "no report", func() bool { return apimeta.IsStatusConditionFalse(site.Status.Conditions, Ready) })
	return admin, site
}

func TestTheOperatorReports(t *testing.T) {
	admin, site := create(t, "reported")
	if site.Labels[Public] != "false" || site.Status.Replicas != 1 {
		t.Errorf("labels %v, status %+v", site.Labels, site.Status)
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"image":"shop@sha256:1","public":true,"replicas":3}}`))
	if err := admin.Patch(t.Context(), site, patch); err != nil {
		t.Fatal(err)
	}
	eventually(t, admin, site, "no second report", func() bool {
		return site.Labels[Public] == "true" && site.Status.Replicas == 3 && apimeta.IsStatusConditionTrue(site.Status.Conditions, Ready)
	})
}

// TestEachUserWritesItsFields: the operator, developers and on-call engineers write their own fields and no others.
func TestEachUserWritesItsFields(t *testing.T) {
	_, site := create(t, "shared")
	const (
		image    = `{"spec":{"image":"shop:2"}}`
		replicas = `{"spec":{"replicas":5}}`
		red      = `{"spec":{"budgets":{"red":7}}}`
		blue     = `{"spec":{"budgets":{"blue":7}}}`
		public   = `{"spec":{"public":true}}`
		label    = `{"metadata":{"labels":{"web.example.com/tier":"1"}}}`
		other    = `{"metadata":{"labels":{"team":"red"}}}`
	)
	for _, c := range []struct{ user, patch, refused string }{
		{operator, label, ""},
		{operator, other, "may not change .metadata.labels"},
		{operator, image, "may not change .spec.image: needs any one of granular:image,"},
		{"lena", image, ""},
		{"lena", red, ""},
		{"lena", blue, "needs any one of granular:web.example.com/budget(blue)"},
		{"lena", replicas, "needs any one of granular:scale,"},
		{"marc", replicas, ""},
		{"marc", image, "may not change .spec.image"},
		// tess holds update. The barrier takes one value of one field from her.
		{"tess", image, ""},
		{"tess", public, "may not change .spec.public: needs granular:web.example.com/exposure"},
		{"yara", public, ""},
	} {
		err := as(t, c.user).Patch(t.Context(), site.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(c.patch)), client.DryRunAll)
		switch {
		case c.refused == "" && err != nil:
			t.Errorf("%s may not patch %s: %v", c.user, c.patch, err)
		case c.refused != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), c.refused)):
			t.Errorf("%s patches %s: %v, want a refusal with %q", c.user, c.patch, err, c.refused)
		}
	}
}
