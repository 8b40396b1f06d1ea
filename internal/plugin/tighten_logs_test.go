package plugin

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata/fake"

	"github.com/fieldperm/fieldperm/internal/tighten"
)

// TestProgress_SaysHowMuchWasRead reads a file of 3 MiB of which 2 MiB are there yet.
func TestProgress_SaysHowMuchWasRead(t *testing.T) {
	for _, test := range []struct {
		size int64
		want string
	}{
		{3 << 20, "\raudit.log: 2 MiB of 3 MiB, 66% "},
		// Standard input has no size.
		{0, "\raudit.log: 2 MiB "},
	} {
		var out bytes.Buffer
		p := &progress{in: bytes.NewReader(make([]byte, 2<<20)), out: &out, name: "audit.log", size: test.size}
		if n, err := io.Copy(io.Discard, p); n != 2<<20 || err != nil {
			t.Fatal(n, err)
		}
		p.say()
		if !strings.HasSuffix(out.String(), test.want) {
			t.Errorf("got %q, want %q", out.String(), test.want)
		}
		p.end()
		if !strings.HasSuffix(out.String(), "\r\x1b[K") {
			t.Errorf("the line stays: %q", out.String())
		}
	}
}

// TestProgress_SaysLittle reads a file byte by byte. The terminal gets a line now and then, not one for each byte.
func TestProgress_SaysLittle(t *testing.T) {
	var out bytes.Buffer
	p := &progress{in: iotest.OneByteReader(strings.NewReader(strings.Repeat("x", 1000))), out: &out, name: "x"}
	if _, err := io.Copy(io.Discard, p); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\r"); n == 0 || n > 100 {
		t.Errorf("%d lines for 1000 bytes", n)
	}
}

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
