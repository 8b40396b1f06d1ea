package policies

import (
	"github.com/google/cel-go/common/types/ref"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/internal/cel"
	"github.com/fieldperm/fieldperm/internal/conditions/expression"
	"github.com/fieldperm/fieldperm/internal/rawjson"
)

// data is an admission request as conditions see it. The resource is the one that the client named, which is the one that was authorized.
type data struct {
	*admissionv1.AdmissionRequest
	write *admission.Write
}

var _ authorizer.ConditionsData = data{}

// GetName returns the name in the request.
func (d data) GetName() string { return d.Name }

// GetNamespace returns the namespace in the request.
func (d data) GetNamespace() string { return d.Namespace }

// GetResource returns the requested resource.
func (d data) GetResource() runtimeschema.GroupVersionResource {
	r := admission.RequestedResource(d.AdmissionRequest)
	return runtimeschema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Resource}
}

// GetSubresource returns the requested subresource.
func (d data) GetSubresource() string {
	return admission.RequestedResource(d.AdmissionRequest).Subresource
}

// GetOperation returns the operation.
func (d data) GetOperation() authorizer.AdmissionOperation {
	return authorizer.AdmissionOperation(d.Operation)
}

// GetOperationOptions returns the options.
func (d data) GetOperationOptions() runtime.Object {
	if len(d.Options.Raw) == 0 || string(d.Options.Raw) == "null" {
		return nil
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(d.Options.Raw); err != nil {
		return &runtime.Unknown{}
	}
	return out
}

// IsDryRun reports whether the request is a dry run.
func (d data) IsDryRun() bool { return d.DryRun != nil && *d.DryRun }

// GetObject returns the object of the request.
func (d data) GetObject() runtime.Object {
	if scanned, _, ok := d.write.Scanned(); ok {
		return inPlace(scanned)
	}
	object, _, err := d.write.Objects()
	return content(d.Object.Raw, object, err)
}

// GetOldObject returns the stored object.
func (d data) GetOldObject() runtime.Object {
	if _, scanned, ok := d.write.Scanned(); ok {
		return inPlace(scanned)
	}
	_, old, err := d.write.Objects()
	return content(d.OldObject.Raw, old, err)
}

// GetKind returns the kind of the objects.
func (d data) GetKind() runtimeschema.GroupVersionKind { return runtimeschema.GroupVersionKind(d.Kind) }

// GetUserInfo returns the author of the request.
func (d data) GetUserInfo() user.Info {
	u := &user.DefaultInfo{Name: d.UserInfo.Username, UID: d.UserInfo.UID, Groups: d.UserInfo.Groups}
	if len(d.UserInfo.Extra) > 0 {
		u.Extra = make(map[string][]string, len(d.UserInfo.Extra))
		for key, values := range d.UserInfo.Extra {
			u.Extra[key] = values
		}
	}
	return u
}

// content returns an object that was decoded from a text, nil for none. If it cannot be read, or a name occurs twice in it, it is of type
// *runtime.Unknown, on which every condition fails.
func content(text []byte, of any, err error) runtime.Object {
	fields, ok := of.(map[string]any)
	switch {
	case err == nil && of == nil:
		return nil
	case err != nil || !ok || namesRepeat(text):
		return &runtime.Unknown{}
	}
	return &unstructured.Unstructured{Object: fields}
}

func namesRepeat(text []byte) bool {
	doc, err := rawjson.Scan(text)
	if err != nil {
		return true
	}
	defer doc.Release()
	return doc.Root().NamesRepeat()
}

// lazyObject is an object of which a condition decodes only what it reads.
type lazyObject struct {
	runtime.Unknown
	json rawjson.Value
}

var _ expression.Valued = &lazyObject{}

// CELValue returns the value for conditions.
func (s *lazyObject) CELValue() ref.Val { return cel.Of(s.json) }

func inPlace(of rawjson.Value) runtime.Object {
	if of.IsAbsent() {
		return nil
	}
	return &lazyObject{json: of}
}
