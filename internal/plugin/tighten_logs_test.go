package plugin

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata/fake"

	"github.com/fieldperm/fieldperm/internal/tighten"
)

// TestTighten_TheServiceAccountTellsTheClusterOfALog: all objects that the subject wrote are gone, as those of a controller that protects
// objects from deletion.
func TestTighten_TheServiceAccountTellsTheClusterOfALog(t *testing.T) {
	scheme := fake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	known := &knownCluster{metadata: fake.NewSimpleMetadataClient(scheme, &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "operator", UID: "here"},
	})}
	for _, c := range []struct{ user, uid, want string }{
		{"system:serviceaccount:ops:operator", "here", ""},
		{"system:serviceaccount:ops:operator", "elsewhere", "of 3 objects in it none has its UID here, 1 have another one, 2 do not exist"},
		{"jane", "here", "of 2 objects in it none has its UID here, 0 have another one, 2 do not exist"},
	} {
		o := &tightening{}
		for _, name := range []string{"a", "b"} {
			o.sample(&tighten.Event{User: c.user, UserUID: c.uid, UID: "u-" + name, Version: "v1", Resource: tighten.Resource{Name: "configmaps"}, Object: tighten.Object{Namespace: corev1.NamespaceDefault, Name: name}})
		}
		if got := known.otherCluster(t.Context(), o.samples); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s %s: %q", c.user, c.uid, got)
		}
	}
}
