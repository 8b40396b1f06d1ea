//go:build integration

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/fieldperm/fieldperm/test/stack"
)

// inProtobuf returns a client that sends and receives protobuf.
func inProtobuf(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	c, err := kubernetes.NewForConfig(config)
	must(t, err)
	return c
}

func userInProtobuf(t *testing.T, s *stack.Stack, name string) *kubernetes.Clientset {
	t.Helper()
	u, err := s.User(name)
	must(t, err)
	return inProtobuf(t, u.Config)
}

func forbidden(t *testing.T, what string, err error, field string) {
	t.Helper()
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), field) {
		t.Errorf("%s: %v, want 403 that names %s", what, err, field)
	}
}

// D10: protobuf holds both halves of an IntOrString, and JSON shows one. Controllers and the API server compare both.
func TestD10_TheUnusedHalfOfAnIntOrString(t *testing.T) {
	s := start(t)
	grant(t, s, "marker-only", rule("apps", []string{"deployments"}, "granular"))
	grant(t, s, "labeller", rule("apps", []string{"deployments"}, "granular", "granular:label(example.com)", "granular:annotation(example.com)"))
	admin := inProtobuf(t, s.Admin()).AppsV1().Deployments("default")
	labels := map[string]string{"app": "halves"}
	before, err := admin.Create(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "halves"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "web", Image: "web:1", LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(8080)}}},
		}}}},
	}}, metav1.CreateOptions{})
	must(t, err)
	remove(t, s, "deployment", "halves")
	evil := before.DeepCopy()
	evil.Spec.Template.Spec.Containers[0].LivenessProbe.HTTPGet.Port.StrVal = "restart"
	_, err = userInProtobuf(t, s, "marker-only").AppsV1().Deployments("default").Update(t.Context(), evil, metav1.UpdateOptions{})
	forbidden(t, "the marker alone", err, "the object as a whole")
	evil.Labels = map[string]string{"example.com/team": "a"}
	_, err = userInProtobuf(t, s, "labeller").AppsV1().Deployments("default").Update(t.Context(), evil, metav1.UpdateOptions{})
	forbidden(t, "beside a label", err, "the object as a whole")
	after, err := admin.Get(t.Context(), "halves", metav1.GetOptions{})
	must(t, err)
	if !equality.Semantic.DeepEqual(before.Spec, after.Spec) {
		t.Error("the stored specification is another one")
	}
	// Labels and annotations alone are written as before, although annotations raise the generation of a Deployment.
	honest := before.DeepCopy()
	honest.Labels, honest.Annotations = map[string]string{"example.com/team": "a"}, map[string]string{"example.com/note": "b"}
	_, err = userInProtobuf(t, s, "labeller").AppsV1().Deployments("default").Update(t.Context(), honest, metav1.UpdateOptions{})
	must(t, err)
}

// D10: the API server shows each byte that is not UTF-8 as U+FFFD.
func TestD10_BytesThatAreNotUTF8(t *testing.T) {
	s := start(t)
	grant(t, s, "marker-only", rule("", []string{"configmaps"}, "granular"))
	admin := inProtobuf(t, s.Admin()).CoreV1().ConfigMaps("default")
	before, err := admin.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "bytes"}, Data: map[string]string{"script": "na\ufffdve", "other": "x"}}, metav1.CreateOptions{})
	must(t, err)
	remove(t, s, "configmap", "bytes")
	evil := before.DeepCopy()
	evil.Data["script"] = "na\xffve"
	_, err = userInProtobuf(t, s, "marker-only").CoreV1().ConfigMaps("default").Update(t.Context(), evil, metav1.UpdateOptions{})
	forbidden(t, "another byte", err, "the object as a whole")
	// No other text equals such bytes.
	before.Data["script"] = "na\uffff\uffffve"
	before, err = admin.Update(t.Context(), before, metav1.UpdateOptions{})
	must(t, err)
	for _, text := range []string{"na\xfe\xffve", "na\ufffd\uffffve", "na\uffff\xffve"} {
		evil := before.DeepCopy()
		evil.Data["script"] = text
		_, err := userInProtobuf(t, s, "marker-only").CoreV1().ConfigMaps("default").Update(t.Context(), evil, metav1.UpdateOptions{})
		forbidden(t, fmt.Sprintf("%q", text), err, "")
	}
}

// D10: the character U+FFFD is no byte that is not UTF-8. An object with it is written as any other.
func TestD10_TheReplacementCharacter(t *testing.T) {
	s := start(t)
	grant(t, s, "labeller", rule("", []string{"configmaps"}, "granular", "granular:label(example.com)", "granular:annotation(example.com)"))
	admin := inProtobuf(t, s.Admin()).CoreV1().ConfigMaps("default")
	object, err := admin.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "character"}, Data: map[string]string{"log": "panic: \ufffd"}}, metav1.CreateOptions{})
	must(t, err)
	remove(t, s, "configmap", "character")
	object.Labels = map[string]string{"example.com/team": "a"}
	labeller := userInProtobuf(t, s, "labeller").CoreV1().ConfigMaps("default")
	object, err = labeller.Update(t.Context(), object, metav1.UpdateOptions{})
	must(t, err)
	// A user with one verb may not add bytes that lock out the others.
	evil := object.DeepCopy()
	evil.Annotations = map[string]string{"example.com/note": "\xff"}
	_, err = labeller.Update(t.Context(), evil, metav1.UpdateOptions{})
	forbidden(t, "an annotation", err, "the object as a whole")
	// The API server stores the name of a field manager as JSON, so that no such byte remains in it.
	for _, manager := range []string{"\xff", "\ufffd"} {
		object.Labels["example.com/team"] += "b"
		object, err = labeller.Update(t.Context(), object, metav1.UpdateOptions{FieldManager: manager})
		must(t, err)
	}
}

// D10: the API server stores a RawExtension as it was sent, and a reader in Go does not take 1.0 for 1.
func TestD10_TheSpellingOfNumbersInARawExtension(t *testing.T) {
	s := start(t)
	grant(t, s, "marker-only", rule("resource.k8s.io", []string{"deviceclasses"}, "granular"))
	const path = "/apis/resource.k8s.io/v1/deviceclasses"
	class := `{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{"name":"spelling"},"spec":{"config":[{"opaque":{"driver":"d.example.com","parameters":{"apiVersion":"x/v1","kind":"P","count":1}}}]}}`
	expect(t, send(t, wire(t, s, "admin", "system:masters"), http.MethodPost, path, runtime.ContentTypeJSON, json.RawMessage(class)), http.StatusCreated)
	remove(t, s, "deviceclass", "spelling")
	answer := send(t, wire(t, s, "marker-only"), http.MethodPut, path+"/spelling", runtime.ContentTypeJSON, json.RawMessage(strings.Replace(class, `"count":1`, `"count":1.0`, 1)))
	expect(t, answer, http.StatusForbidden)
}
