package admission

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/sync/semaphore"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/schemacheck"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/load"
)

// SchemaReviewer refuses documents that do not compile, with the compiler's own errors: a CustomResourceDefinition with faulty permission
// verbs, a PermissionSchema, an UncoveredPermissionSet or a ConditionalPolicy. The zero SchemaReviewer refuses every document.
type SchemaReviewer struct {
	// Documents returns the sources in force, nil while there are none.
	Documents func() *compile.Documents
	// Holders returns the holders of a verb on the resource of a kind, each with the role that grants it. The error is ErrHoldersUnknown,
	// or the reason why the holders cannot be determined. If Holders is nil, the holders are unknown.
	Holders func(kind runtimeschema.GroupKind, is func(verb string) bool) ([]string, error)
	// Policy returns the faults of the JSON of a ConditionalPolicy with a name. If Policy is nil, every policy is an error.
	Policy func(raw []byte, name string) []error
	// Compiles bounds the documents that are compiled at a time: each compile takes memory for all documents. nil is no bound.
	Compiles *semaphore.Weighted
}

const definitionKind = "CustomResourceDefinition"

// resource is the API resource of a kind of document.
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
	case metav1.GroupVersionKind{Group: own.Group, Version: own.Version, Kind: v1alpha1.ConditionalPolicyKind}:
		return resource{kind.Group, kind.Version, v1alpha1.ConditionalPolicyResource}, true
	}
	return resource{}, false
}

// DocumentSource returns the name of a document of the cluster in the compiler's errors.
func DocumentSource(kind, name string) string { return kind + " " + name }

// Review returns the faults of the document in a request. Three kinds of fault are warnings and do not refuse the document: an Unmatched
// fault, which is about something that may be created later; a replaced verb that users hold; and remarks on where a set or a policy applies. Code
// returns 400 or 503 for an error.
func (r *SchemaReviewer) Review(ctx context.Context, req *admissionv1.AdmissionRequest) ([]error, error) {
	if req == nil {
		return nil, badRequest("admission review: has no request: send one with .request")
	}
	if _, known := documentResource(req.Kind); !known {
		return nil, badRequest("admission request: kind %q is no document of a permission schema: send a CustomResourceDefinition, a PermissionSchema, an UncoveredPermissionSet or a ConditionalPolicy", req.Kind.String())
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
	if req.Kind.Kind == v1alpha1.ConditionalPolicyKind {
		if r.Policy == nil {
			return nil, errors.New("conditional policies: are not known here: configure them")
		}
		return append(r.Policy(req.Object.Raw, req.Name), policyWarnings(req.Object.Raw)...), nil
	}
	if r.Documents == nil {
		return nil, unavailable("permission schema: is not loaded: try again")
	}
	current := r.Documents()
	if current == nil {
		return nil, unavailable("permission schema: is not loaded yet: try again, and look at /readyz if it stays so")
	}
	if r.Compiles != nil {
		if err := r.Compiles.Acquire(ctx, 1); err != nil {
			return nil, unavailable("permission schema: other documents are being compiled: try again")
		}
		defer r.Compiles.Release(1)
	}
	source := DocumentSource(req.Kind.Kind, req.Name)
	faults := r.trial(*current, source, req.Kind.Kind, req.Object.Raw)
	if req.Operation == admissionv1.Update && req.Kind.Kind == definitionKind && slices.ContainsFunc(faults, refuses) {
		faults = notWorse(faults, r.trial(*current, source, req.Kind.Kind, req.OldObject.Raw))
	}
	return faults, nil
}

// notWorse turns the faults of a definition into warnings if its old version had them too. They are faults in other users' documents,
// which were created while fieldperm was down, and this update may be one step of the repair. The kind fails until all are repaired. If
// one fault is new, notWorse returns all faults unchanged.
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

// samePlace reports whether two faults are about the same entry of a document, which is unusable in both cases. For faults without an
// entry it reports whether they are equal.
func samePlace(a, b error) bool {
	var e, other *schema.Error
	if errors.As(a, &e) && errors.As(b, &other) && e.Pointer != "" && other.Pointer != "" {
		return e.Source == other.Source && e.Pointer == other.Pointer
	}
	return a.Error() == b.Error()
}

// refuses reports whether a fault refuses the document.
func refuses(fault error) bool {
	var e *schema.Error
	var w warning
	return !(errors.As(fault, &e) && e.Unmatched) && !errors.As(fault, &w)
}

// sameDocument reports whether an update changes nothing that a compile sees. Such an update is allowed even for a faulty document;
// otherwise no user could remove its finalizer.
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

// trial compiles the document twice. First it compiles the document with the catalogue only, so that no other document can hide its
// faults by taking precedence. Then it compiles the document with the sources in force, in place of its old version.
func (r *SchemaReviewer) trial(current compile.Documents, source, kind string, raw []byte) []error {
	decode := load.Decode
	if kind == definitionKind {
		// Keys of its schema that only a newer API server knows are not faults; that server checks them.
		decode = load.CRD
	}
	added, faults := decode(source, raw)
	if len(faults) > 0 {
		return faults
	}
	all := without(current, source)
	ours := func(e *schema.Error) bool { return e.Source == source }
	if kind == definitionKind {
		// Its kinds compile without the kinds of other definitions. But permission documents for them matter: if an administrator's
		// schema no longer fits, the kind would fail.
		all.Topologies, all.Uncovered = nil, nil
		ours = func(e *schema.Error) bool { return e.Source == source || !e.Unmatched }
	}
	trials := []compile.Documents{all}
	if len(added.Permissions) > 0 {
		alone := all
		alone.Permissions = slices.DeleteFunc(slices.Clone(all.Permissions), func(p compile.PermissionDocument) bool { return p.Rank > compile.RankCatalogue })
		trials = []compile.Documents{alone, all}
	}
	var compiled *schema.Schema
	var sets *schemacheck.Sets
	for _, documents := range trials {
		var errs []error
		compiled, sets, errs = schemacheck.Compile(documents.Append(added))
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
	before, _ := compile.Compile(current)
	if faults := newlyFailed(before, compiled, source); len(faults) > 0 {
		return faults
	}
	if faults := takenAway(schemacheck.NewSets(current, before), sets, source); len(faults) > 0 {
		return faults
	}
	for i := range added.Permissions {
		for _, text := range SchemaWarnings(&added.Permissions[i]) {
			faults = append(faults, warning(text))
		}
	}
	return append(faults, r.replaced(added, before, compiled)...)
}

// newlyFailed returns a fault of a document for each reason why kinds fail with it that compile without it. The compiler may find the fault in another
// document, because only both together exceed a limit, but then writes of these kinds would be refused.
func newlyFailed(before, after *schema.Schema, source string) []error {
	old, kinds := before.Failed(), map[string][]string{}
	for gvk, err := range after.Failed() {
		if old[gvk] == nil {
			kinds[err.Error()] = append(kinds[err.Error()], gvk.String())
		}
	}
	var faults []error
	for _, reason := range slices.Sorted(maps.Keys(kinds)) {
		faults = append(faults, &schema.Error{Source: source, Message: fmt.Sprintf("writes of %s would be refused with this document: %s", firstOf(kinds[reason]), reason)})
	}
	return faults
}

// firstOf returns the first of some kinds, and how many there are.
func firstOf(kinds []string) string {
	first := fmt.Sprintf("%q", slices.Min(kinds))
	if len(kinds) > 1 {
		first += fmt.Sprintf(" and %d other kinds", len(kinds)-1)
	}
	return first
}

// takenAway returns the faults of a PermissionSchema that replaces a verb which an UncoveredPermissionSet uses as a barrier for a field.
func takenAway(before, after *schemacheck.Sets, source string) []error {
	var faults []error
	for _, b := range schemacheck.TakenFromSets(before, after) {
		faults = append(faults, b.TakenBy(source))
	}
	return faults
}

// without returns a copy of the documents without those of one source.
func without(d compile.Documents, source string) compile.Documents {
	var out compile.Documents
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

// maxCauses is the maximum number of faults that a response lists one by one.
const maxCauses = 20

// SchemaResponse renders the result of Review. Without refusing faults the document is allowed, with a warning for each other fault. With
// refusing faults the response is 422 with the faults. An error gives the status of that error.
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
			// The fault may be in another document, such as the PermissionSchema that a new definition no longer fits.
			if req != nil && e.Source != DocumentSource(req.Kind.Kind, req.Name) {
				cause.Field = e.Source + ":" + e.Pointer
			}
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
