package admission

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/load"
)

// SchemaReviewer keeps documents that do not compile out of the cluster, with the compiler's own
// errors: a CustomResourceDefinition with faulty permission verbs, a PermissionSchema or an
// UncoveredPermissionSet. The zero SchemaReviewer refuses all.
type SchemaReviewer struct {
	// Documents returns the sources in force, nil while there are none.
	Documents func() *schema.Documents
	// Holders names those who hold a verb on the resource of a kind, each with the role that grants it. The error is
	// ErrHoldersUnknown, or says why it cannot be told. Nil for nobody knows.
	Holders func(kind runtimeschema.GroupKind, is func(verb string) bool) ([]string, error)
}

const definitionKind = "CustomResourceDefinition"

// resource is where a kind of document is served.
type resource struct{ group, version, name string }

func (r resource) String() string { return r.name + "." + r.group }

func documentResource(kind metav1.GroupVersionKind) (resource, bool) {
	own := v1alpha1.GroupVersion
	switch kind {
	case metav1.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: definitionKind}:
		return resource{kind.Group, kind.Version, "customresourcedefinitions"}, true
	case metav1.GroupVersionKind{Group: own.Group, Version: own.Version, Kind: "PermissionSchema"}:
		return resource{kind.Group, kind.Version, "permissionschemas"}, true
	case metav1.GroupVersionKind{Group: own.Group, Version: own.Version, Kind: "UncoveredPermissionSet"}:
		return resource{kind.Group, kind.Version, "uncoveredpermissionsets"}, true
	}
	return resource{}, false
}

// DocumentSource names a document of the cluster in the compiler's errors.
func DocumentSource(kind, name string) string { return kind + " " + name }

// Review returns the faults of the document that a request brings. A fault that is Unmatched is about
// something that may come later, and a reason to warn, not to refuse; so is a verb that somebody holds and that is replaced, and
// where a set holds. An error is a 400 or 503 by
// Code.
func (r *SchemaReviewer) Review(req *admissionv1.AdmissionRequest) ([]error, error) {
	if req == nil {
		return nil, badRequest("admission review: has no request: send one with .request")
	}
	if _, known := documentResource(req.Kind); !known {
		return nil, badRequest("admission request: kind %q is no document of a permission schema: send a CustomResourceDefinition, a PermissionSchema or an UncoveredPermissionSet", req.Kind.String())
	}
	switch {
	case req.Operation != admissionv1.Create && req.Operation != admissionv1.Update:
		return nil, badRequest("admission request: operation %q brings no document: take it out of the webhook's rules, which need CREATE and UPDATE", req.Operation)
	case req.SubResource != "":
		return nil, badRequest("admission request: subresource %q brings no document: take it out of the webhook's rules", req.SubResource)
	}
	if err := present("object", req.Object.Raw); err != nil {
		return nil, err
	}
	if req.Operation == admissionv1.Update {
		if err := present("oldObject", req.OldObject.Raw); err != nil {
			return nil, err
		}
		if same, err := sameDocument(req.OldObject.Raw, req.Object.Raw); err != nil || same {
			return nil, err
		}
	}
	if r.Documents == nil {
		return nil, unavailable("permission schema: is not loaded: try again")
	}
	current := r.Documents()
	if current == nil {
		return nil, unavailable("permission schema: is not loaded yet: try again, and look at /readyz if it stays so")
	}
	source := DocumentSource(req.Kind.Kind, req.Name)
	faults := r.trial(*current, source, req.Kind.Kind, req.Object.Raw)
	if req.Operation == admissionv1.Update && req.Kind.Kind == definitionKind && slices.ContainsFunc(faults, refuses) {
		faults = notWorse(faults, r.trial(*current, source, req.Kind.Kind, req.OldObject.Raw))
	}
	return faults, nil
}

// notWorse makes warnings of the faults of a definition that it had before: of others' documents, which got in while
// fieldperm was down, and which this update may be to mend step by step. Its kind fails until then. One new fault, and all
// are returned as they are.
func notWorse(faults, before []error) []error {
	var out []error
	for _, fault := range faults {
		if !refuses(fault) {
			out = append(out, fault)
			continue
		}
		if !slices.ContainsFunc(before, func(old error) bool { return samePlace(old, fault) }) {
			return faults
		}
		out = append(out, warning("it has been so before: "+fault.Error()))
	}
	return out
}

// samePlace reports whether two faults are of the same entry of a document, which is of no use then either way; where they
// name none, whether they are the same.
func samePlace(a, b error) bool {
	var e, other *schema.Error
	if errors.As(a, &e) && errors.As(b, &other) && e.Pointer != "" && other.Pointer != "" {
		return e.Source == other.Source && e.Pointer == other.Pointer
	}
	return a.Error() == b.Error()
}

// refuses reports whether a fault keeps a document out.
func refuses(fault error) bool {
	var e *schema.Error
	var w warning
	return !(errors.As(fault, &e) && e.Unmatched) && !errors.As(fault, &w)
}

// sameDocument reports that nothing changed that a compile would see. Such an update is let through
// though the document be faulty, or nobody could take its finalizer away.
func sameDocument(old, new []byte) (bool, error) {
	var documents [2]struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		Spec map[string]any `json:"spec"`
	}
	for i, raw := range [][]byte{old, new} {
		if err := utiljson.Unmarshal(raw, &documents[i]); err != nil {
			return false, badRequest("admission request: the object is no document: %w: send JSON objects", err)
		}
	}
	const verbs = v1alpha1.PermissionVerbsAnnotation
	before, had := documents[0].Metadata.Annotations[verbs]
	after, has := documents[1].Metadata.Annotations[verbs]
	return had == has && before == after && reflect.DeepEqual(documents[0].Spec, documents[1].Spec), nil
}

// trial compiles the document with the catalogue, so that no other document can hide its faults by
// taking precedence, and then together with the sources in force, in place of the version of it that
// they hold.
func (r *SchemaReviewer) trial(current schema.Documents, source, kind string, raw []byte) []error {
	decode := load.Decode
	if kind == definitionKind {
		// Keys of its schema that only a newer API server knows are that server's affair.
		decode = load.CRD
	}
	added, faults := decode(source, raw)
	if len(faults) > 0 {
		return faults
	}
	all := without(current, source)
	ours := func(e *schema.Error) bool { return e.Source == source }
	if kind == definitionKind {
		// Its kinds compile without those of others; of the rest, what guards them matters: an
		// administrator's schema that no longer fits would make the kind fail.
		all.Topologies, all.Uncovered = nil, nil
		ours = func(e *schema.Error) bool { return e.Source == source || !e.Unmatched }
	}
	trials := []schema.Documents{all}
	if len(added.Permissions) > 0 {
		alone := all
		alone.Permissions = slices.DeleteFunc(slices.Clone(all.Permissions), func(p schema.PermissionDocument) bool { return p.Rank > schema.RankCatalogue })
		trials = []schema.Documents{alone, all}
	}
	var compiled *schema.Schema
	for _, documents := range trials {
		next, errs := schema.Compile(documents.Append(added))
		compiled = next
		for _, err := range errs {
			var e *schema.Error
			if errors.As(err, &e) && ours(e) {
				faults = append(faults, err)
			}
		}
		for i := range added.Uncovered {
			for _, text := range SetWarnings(compiled, &added.Uncovered[i]) {
				faults = append(faults, warning(text))
			}
		}
		if len(faults) > 0 {
			return faults
		}
	}
	if kind != v1alpha1.PermissionSchemaKind {
		return nil
	}
	before, _ := schema.Compile(current)
	if faults := takenAway(before, compiled, source); len(faults) > 0 {
		return faults
	}
	return append(faults, r.replaced(added, before, compiled)...)
}

// takenAway are the faults of a PermissionSchema that replaces a verb by which an UncoveredPermissionSet bars a
// field.
func takenAway(before, after *schema.Schema, source string) []error {
	var faults []error
	for _, b := range schema.Unborne(before, after) {
		faults = append(faults, b.TakenBy(source))
	}
	return faults
}

// without returns the documents less those of one source, as a copy.
func without(d schema.Documents, source string) schema.Documents {
	var out schema.Documents
	for _, t := range d.Topologies {
		if t.Source != source {
			out.Topologies = append(out.Topologies, t)
		}
	}
	for _, p := range d.Permissions {
		if p.Source != source {
			out.Permissions = append(out.Permissions, p)
		}
	}
	for _, u := range d.Uncovered {
		if u.Source != source {
			out.Uncovered = append(out.Uncovered, u)
		}
	}
	return out
}

// maxCauses bounds how many faults a response lists one by one.
const maxCauses = 20

// SchemaResponse renders what Review returned: allowed, with a warning for each unmatched fault; or 422
// with every fault; or the status of an error.
func SchemaResponse(faults []error, err error, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	response := &admissionv1.AdmissionResponse{}
	if req != nil {
		response.UID = req.UID
	}
	if err != nil {
		response.Result = failure(err)
		return response
	}
	var causes []metav1.StatusCause
	var messages []string
	for _, fault := range faults {
		if !refuses(fault) {
			response.Warnings = append(response.Warnings, fault.Error())
			continue
		}
		cause := metav1.StatusCause{Type: metav1.CauseType(field.ErrorTypeInvalid), Message: fault.Error()}
		if e := (*schema.Error)(nil); errors.As(fault, &e) {
			cause.Field, cause.Message = e.Pointer, e.Message
		}
		if len(causes) < maxCauses {
			causes = append(causes, cause)
			messages = append(messages, fault.Error())
		}
	}
	if len(causes) == 0 {
		response.Allowed = true
		return response
	}
	response.Warnings = nil
	kind, _ := documentResource(req.Kind)
	response.Result = &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
		Message: fmt.Sprintf("%s %q is invalid: %s", kind, req.Name, strings.Join(messages, "; ")),
		Details: &metav1.StatusDetails{Group: kind.group, Kind: req.Kind.Kind, Name: req.Name, Causes: causes},
	}
	return response
}
