package plugin

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fieldperm/fieldperm/generators/webhooks"
	"github.com/fieldperm/fieldperm/internal/needs"
	"github.com/fieldperm/fieldperm/verbs"
)

// refused reads why the API server refuses a dry run. The causes of fieldperm's webhooks are the changes that they saw.
func (o *difference) refused(a *written, err error) {
	var refusal apierrors.APIStatus
	if !errors.As(err, &refusal) {
		return
	}
	status := refusal.Status()
	_, webhook, denied := strings.Cut(status.Message, `admission webhook "`)
	webhook, _, _ = strings.Cut(webhook, `"`)
	switch {
	case denied && (webhook == webhooks.GranularWebhook || webhook == webhooks.UncoveredWebhookName):
		a.byFieldperm = true
		if status.Details != nil {
			a.seen = changesIn(status.Details.Causes)
		}
	case apierrors.IsNotFound(err):
		a.notes = append(a.notes, "the API server finds no place for the object, so create that first: "+status.Message)
		return
	}
	a.refusal = status.Message
}

// needed finds the verbs in the message of a cause.
var needed = regexp.MustCompile(`^needs (?:any one of )?([^ ,;]+(?:, [^ ,;]+)*)`)

// changesIn returns the changes in the causes of a denial: paths, and verbs from specific to general.
func changesIn(causes []metav1.StatusCause) []needs.Change {
	var out []needs.Change
	for _, cause := range causes {
		text := cause.Message
		if _, after, first := strings.Cut(text, " may not change "+cause.Field); first && cause.Field != "" {
			_, text, _ = strings.Cut(after, ": ")
		}
		found := needed.FindStringSubmatch(text)
		if found == nil {
			continue
		}
		change := needs.Change{Path: cause.Field}
		for verb := range strings.SplitSeq(found[1], ", ") {
			if v, err := verbs.Parse(verb); err == nil && v.String() != verbs.Marker {
				change.Needs = append(change.Needs, v.String())
			}
		}
		if len(change.Needs) > 0 {
			out = append(out, change)
		}
	}
	return out
}

// decide finds what the change from live to stored needs.
func (o *difference) decide(ctx context.Context, a *written, live, stored *unstructured.Unstructured) error {
	request, err := o.request(a, live, stored)
	if err != nil {
		return err
	}
	if err := decidable(o.caller.Snapshot, request); err != nil {
		return err
	}
	question := needs.Question{Reviewer: *o.caller.reviewer(), Request: request, Enter: []string{"patch"}}
	if live == nil {
		question.Enter = []string{"create"}
		question.Unnamed = !o.serverSide
		if o.serverSide {
			question.Enter = []string{"patch", "create"}
		}
	}
	answer, err := needs.Find(ctx, question)
	if err != nil {
		return err
	}
	a.answer, a.unnamed = *answer, question.Unnamed
	if err := o.onlySeen(ctx, a, question); err != nil {
		return err
	}
	if err := o.reads(ctx, a, request); err != nil {
		return err
	}
	o.compareWithAPIServer(a)
	if live != nil && o.serverSide && live.GetAnnotations()["kubectl.kubernetes.io/last-applied-configuration"] != "" {
		a.notes = append(a.notes, "client-side apply wrote the object: kubectl apply --server-side sends further requests about its owners, whose refusal is only a warning of kubectl")
	}
	return nil
}

// request returns the request that admission sees.
func (o *difference) request(a *written, live, stored *unstructured.Unstructured) (*admissionv1.AdmissionRequest, error) {
	mapping := a.info.Mapping
	kind := metav1.GroupVersionKind(mapping.GroupVersionKind)
	of := metav1.GroupVersionResource(mapping.Resource)
	request := &admissionv1.AdmissionRequest{
		Kind: kind, Resource: of, RequestKind: &kind, RequestResource: &of,
		Name: a.info.Name, Namespace: a.info.Namespace, Operation: admissionv1.Update, UserInfo: o.caller.userInfo(),
	}
	if of.Group == "" && of.Resource == "namespaces" {
		request.Namespace = a.info.Name
	}
	before, err := encodedObject(live)
	if err != nil {
		return nil, err
	}
	after, err := encodedObject(stored)
	if err != nil {
		return nil, err
	}
	if live == nil {
		request.Operation = admissionv1.Create
	} else {
		request.OldObject = runtime.RawExtension{Raw: before}
	}
	request.Object = runtime.RawExtension{Raw: after}
	return request, nil
}

// onlySeen keeps of the changes that the API server saw those that are not in the computed result, such as of a mutating webhook.
func (o *difference) onlySeen(ctx context.Context, a *written, question needs.Question) error {
	a.seen = slices.DeleteFunc(a.seen, func(seen needs.Change) bool {
		return slices.ContainsFunc(a.answer.Changes, func(c needs.Change) bool { return c.Path == seen.Path })
	})
	for i := range a.seen {
		c := &a.seen[i]
		general := slices.Clone(c.Needs)
		slices.Reverse(general)
		var err error
		if c.Held, err = needs.Holds(ctx, question, general); err != nil {
			return err
		}
		if c.Held == "" && !slices.ContainsFunc(c.Needs, func(verb string) bool { return slices.Contains(a.answer.Ask, verb) }) {
			a.answer.Ask = append(a.answer.Ask, c.Needs[0])
		}
	}
	return nil
}

// reads asks for the verb get, without which kubectl apply cannot compare the object. The user of the kubeconfig has just read it.
func (o *difference) reads(ctx context.Context, a *written, request *admissionv1.AdmissionRequest) error {
	if o.serverSide || o.as == "" || slices.ContainsFunc(a.answer.Entries, func(e needs.Entry) bool { return e.Verb == "get" }) {
		return nil
	}
	decision, err := o.caller.chain.For(request).Authorize(ctx, "get", true)
	if err == nil && !decision.Allowed() {
		err = decision.Failure
	}
	if err != nil {
		return err
	}
	entry := needs.Entry{Verb: "get"}
	if decision.Allowed() {
		entry.Held = entry.Verb
	} else {
		a.answer.Allowed = false
		a.answer.Ask = append([]string{entry.Verb}, a.answer.Ask...)
	}
	a.answer.Entries = append([]needs.Entry{entry}, a.answer.Entries...)
	return nil
}

// compareWithAPIServer adds what the API server decided on the dry run, which counts more than the verbs that are known here.
func (o *difference) compareWithAPIServer(a *written) {
	refusal := a.refusal
	a.refusal = ""
	byVerbs := a.byFieldperm || cannot.MatchString(refusal)
	// A request that the verbs let in is refused as long as enforcement is not proven.
	entered := !slices.ContainsFunc(a.answer.Entries, func(e needs.Entry) bool { return e.Held == "" })
	switch {
	case o.as != "" && refusal != "" && !byVerbs:
		a.notes = append(a.notes, "the API server refuses the request of the user of the kubeconfig, and may refuse that of the other user: "+refusal)
	case o.as != "":
	case refusal != "" && (!byVerbs || !a.byFieldperm && entered || a.answer.Allowed && len(a.answer.Ask) == 0):
		a.refusal = refusal
	case !a.computed && !a.answer.Allowed:
		a.answer.Allowed, a.answer.Enough, a.answer.Ask, a.answer.Uncured = true, true, nil, nil
		a.notes = append(a.notes, "the API server allows the request all the same: fieldperm does not decide on it, or other authorizers do; --authorization-config names them")
	}
}

// cannot matches a refusal by authorization.
var cannot = regexp.MustCompile(`User ".*" cannot (?:patch|update|create) resource`)

// grant returns what to ask an administrator for.
func (a *written) grant() needs.Grant {
	of := a.info.Mapping.Resource
	namespace := a.info.Namespace
	return needs.Grant{Namespace: namespace, Group: of.Group, Resource: of.Resource, Name: a.info.Name, Verbs: a.answer.Ask, Unnamed: a.unnamed}
}

// entryNeeds returns the verbs of which one lets a request in.
func entryNeeds(e needs.Entry) string {
	if e.Marker {
		return fmt.Sprintf("%s, %s", verbs.Marker, e.Verb)
	}
	return e.Verb
}
