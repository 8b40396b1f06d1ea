package plugin

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/internal/tighten"
)

func TestTighten_UndecidedAreServedAndWritten(t *testing.T) {
	lists := []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "configmaps", Verbs: metav1.Verbs{"get", "update"}}, {Name: "services/proxy", Verbs: metav1.Verbs{"get", "update"}}, {Name: "pods/exec", Verbs: metav1.Verbs{"create", "get"}},
		}},
		{GroupVersion: "x.example.com/v2", APIResources: []metav1.APIResource{{Name: "bs", Verbs: metav1.Verbs{"patch"}}, {Name: "as", Verbs: metav1.Verbs{"patch"}}}},
		{GroupVersion: "x.example.com/v1", APIResources: []metav1.APIResource{{Name: "as", Verbs: metav1.Verbs{"update"}}}},
		{GroupVersion: "y.example.com/v1", APIResources: []metav1.APIResource{{Name: "as", Verbs: metav1.Verbs{"update"}}}},
	}
	got := undecided(lists, []string{"y.example.com", "z.example.com"}, func(r tighten.Resource) tighten.Decides {
		if r.Name == "configmaps" {
			return tighten.DecidesYes
		}
		return tighten.DecidesNot
	})
	if text := fmt.Sprint(got); text != "[services/proxy as.x.example.com bs.x.example.com *.y.example.com *.z.example.com]" {
		t.Error(text)
	}
}

// Without a cluster, those that were observed on a kube-apiserver stay.
func TestTighten_UndecidedOffline(t *testing.T) {
	got := fmt.Sprint(undecidedOffline())
	for _, want := range []string{"validatingwebhookconfigurations.admissionregistration.k8s.io", "nodes/proxy", "pods/proxy", "services/proxy"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing: %s", want, got)
		}
	}
	for _, not := range []string{"configmaps", "exec", "tokenreviews", "deployments"} {
		if strings.Contains(got, not) {
			t.Errorf("%s is there: %s", not, got)
		}
	}
	for _, r := range undecidedOffline() {
		if decidesOffline(r) != tighten.DecidesNot {
			t.Errorf("fieldperm decides on %s", r)
		}
	}
}
