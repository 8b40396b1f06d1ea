package plugin

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/generators/webhooks"
	"github.com/fieldperm/fieldperm/internal/diagnosis"
	"github.com/fieldperm/fieldperm/internal/interlock"
	"github.com/fieldperm/fieldperm/internal/sources"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
)

// readWebhooks reads fieldperm's webhook configurations. One with another name is found by a path of fieldperm.
func (r *statusReader) readWebhooks(ctx context.Context) {
	list, err := r.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		r.unknown("webhook configurations", err, "list on validatingwebhookconfigurations.admissionregistration.k8s.io")
		return
	}
	for i := range list.Items {
		c := &list.Items[i]
		for j := range c.Webhooks {
			if w := &c.Webhooks[j]; isOwn(w.Name) {
				r.status.Webhooks = append(r.status.Webhooks, webhookOf(c, w))
			}
		}
		if c.Name == webhooks.UncoveredName {
			r.status.Versions.Webhook = cmp.Or(c.Annotations[webhooks.WriterAnnotation], unrecorded)
		}
	}
}

func isOwn(name string) bool {
	return slices.Contains([]string{
		webhooks.GranularWebhook, webhooks.UncoveredWebhookName, webhooks.ObservationsWebhook, webhooks.TrialsWebhook, webhooks.SchemasWebhook,
	}, name)
}

func webhookOf(c *admissionregistrationv1.ValidatingWebhookConfiguration, w *admissionregistrationv1.ValidatingWebhook) diagnosis.Webhook {
	out := diagnosis.Webhook{Configuration: c.Name, Name: w.Name, CA: validity(w.ClientConfig.CABundle)}
	if w.FailurePolicy != nil {
		out.FailurePolicy = string(*w.FailurePolicy)
	}
	switch config := w.ClientConfig; {
	case config.URL != nil:
		out.Calls = *config.URL
	case config.Service != nil:
		out.Calls, out.Namespace = fmt.Sprintf("Service %s/%s", config.Service.Namespace, config.Service.Name), config.Service.Namespace
	}
	// Which CA fieldperm-webhook serves with is not known here.
	if w.Name == webhooks.GranularWebhook {
		if err := interlock.Static(c, nil); err != nil {
			out.Fault = err.Error()
		}
	}
	if w.Name == webhooks.UncoveredWebhookName && out.FailurePolicy != string(admissionregistrationv1.Fail) {
		out.Fault = fmt.Sprintf("webhook configuration %q: webhook %q has not failurePolicy Fail: delete it, and fieldperm-webhook makes it again", c.Name, w.Name)
	}
	return out
}

// validity says until when a CA bundle is valid: the last of its certificates.
func validity(bundle []byte) string {
	var last time.Time
	count := 0
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			count++
			if c.NotAfter.After(last) {
				last = c.NotAfter
			}
		}
	}
	switch {
	case len(bundle) == 0:
		return "that of kube-apiserver's system"
	case count == 0:
		return "no certificate"
	}
	return "until " + last.UTC().Format(time.RFC3339)
}

// readSources reads the objects and the annotations that verbs, barriers and conditions come from.
func (r *statusReader) readSources(ctx context.Context) {
	for _, kind := range [][2]string{
		{v1alpha1.PermissionSchemaKind, v1alpha1.PermissionSchemaResource},
		{v1alpha1.UncoveredPermissionSetKind, v1alpha1.UncoveredPermissionSetResource},
		{v1alpha1.ConditionalPolicyKind, v1alpha1.ConditionalPolicyResource},
	} {
		list, err := r.objects.Resource(v1alpha1.GroupVersion.WithResource(kind[1])).List(ctx, metav1.ListOptions{})
		switch {
		case apierrors.IsNotFound(err):
			continue // An older fieldperm does not have the kind.
		case err != nil:
			r.miss("the state of each "+kind[0], err, "list on "+kind[1]+"."+v1alpha1.GroupVersion.Group)
			continue
		}
		for i := range list.Items {
			r.status.Sources = append(r.status.Sources, sourceOf(&list.Items[i], kind[0]))
		}
	}
	list, err := r.objects.Resource(sources.CustomResourceDefinitions()).List(ctx, metav1.ListOptions{})
	if err != nil {
		r.miss("annotations of CustomResourceDefinitions", err, "list on customresourcedefinitions.apiextensions.k8s.io")
		return
	}
	annotated := slices.DeleteFunc(list.Items, func(u unstructured.Unstructured) bool {
		return u.GetAnnotations()[v1alpha1.PermissionVerbsAnnotation] == ""
	})
	if len(annotated) == 0 {
		return
	}
	snapshot, _, err := sources.Readable(ctx, r.config)
	if err != nil {
		r.miss("whether annotations compile", err, "what kubectl fieldperm explain needs")
		return
	}
	for i := range annotated {
		r.status.Sources = append(r.status.Sources, annotationOf(&annotated[i], snapshot, r.status.Answer != nil && r.status.Answer.Barriers))
	}
}

// The forms of a source that may be in force. Which valid form a replica has last read is known to that replica only.
const (
	currentForm = "the current form"
	lastForm    = "the last valid form, or none: then writes of what it guards are refused"
)

// sourceOf returns the state of an object by its conditions.
func sourceOf(object *unstructured.Unstructured, kind string) diagnosis.Source {
	out := diagnosis.Source{Kind: kind, Name: object.GetName(), Compiled: "Unknown", Enforced: "Unknown", InForce: "unknown"}
	var status v1alpha1.Status
	content, _, err := unstructured.NestedMap(object.Object, "status")
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(content, &status)
	}
	compiled, enforced := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionCompiled), meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionEnforced)
	if err != nil || compiled == nil {
		out.Message = "fieldperm-webhook has written no status: see that it runs, and that it may patch the status"
		return out
	}
	if status.ObservedGeneration != object.GetGeneration() || compiled.ObservedGeneration != object.GetGeneration() {
		out.Message = fmt.Sprintf("fieldperm-webhook has not read generation %d yet, and says what it says of generation %d", object.GetGeneration(), status.ObservedGeneration)
		return out
	}
	out.Compiled, out.Reason, out.Message, out.InForce = string(compiled.Status), compiled.Reason, compiled.Message, currentForm
	if compiled.Status == metav1.ConditionFalse {
		out.InForce = lastForm
	}
	if enforced != nil && enforced.ObservedGeneration == object.GetGeneration() {
		out.Enforced = string(enforced.Status)
		if compiled.Status == metav1.ConditionTrue {
			out.Reason = enforced.Reason
			out.Message = strings.Trim(compiled.Message+"; "+enforced.Message, "; ")
		}
	}
	return out
}

// annotationOf returns the state of an annotation. Nothing in the cluster says whether it compiles, so the loader has compiled it here. loaded means that the
// API servers have the rules of all barriers.
func annotationOf(definition *unstructured.Unstructured, snapshot *sources.Snapshot, loaded bool) diagnosis.Source {
	out := diagnosis.Source{
		Kind: "CustomResourceDefinition", Name: definition.GetName(), Compiled: string(metav1.ConditionTrue), Enforced: string(metav1.ConditionTrue), Reason: v1alpha1.ReasonNoBarriers, InForce: currentForm,
	}
	source := out.Kind + " " + out.Name
	for i := range snapshot.Documents.Permissions {
		if d := &snapshot.Documents.Permissions[i]; d.Source == source && slices.ContainsFunc(d.Entries, compile.Entry.IsBarrier) {
			out.Reason, out.Message = v1alpha1.ReasonEnforced, "each kube-apiserver has loaded the rules of all barriers"
			if !loaded {
				out.Enforced, out.Reason = string(metav1.ConditionUnknown), v1alpha1.ReasonNotProven
				out.Message = "it has barriers, and fieldperm-webhook does not say that each kube-apiserver has loaded their rules"
			}
		}
	}
	var faults []string
	for _, err := range snapshot.Warnings {
		var fault *schema.Error
		if errors.As(err, &fault) && fault.Source == source {
			faults = append(faults, err.Error())
		}
	}
	if len(faults) > 0 {
		out.Compiled, out.Enforced, out.Reason, out.InForce = string(metav1.ConditionFalse), string(metav1.ConditionUnknown), v1alpha1.ReasonFaulty, lastForm
		out.Message = strings.Join(faults, "; ")
	}
	return out
}
