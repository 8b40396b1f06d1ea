package schema

import (
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
)

// Form is the form in which a source gives verbs to fields.
type Form string

// These are all forms.
const (
	// FormCatalogue is the built-in catalogue.
	FormCatalogue Form = "catalogue"
	// FormScale is the path of the replicas that a CustomResourceDefinition declares for its subresource scale.
	FormScale Form = "scale"
	// FormSchemaKeys are the permission keys in the schemas of a CustomResourceDefinition.
	FormSchemaKeys Form = "schemaKeys"
	// FormAnnotation is the annotation fieldperm.dev/permission-verbs of a CustomResourceDefinition.
	FormAnnotation Form = "annotation"
	// FormOpenAPI are the permission keys in the OpenAPI document of an API server.
	FormOpenAPI Form = "openAPI"
	// FormPermissionSchema is a PermissionSchema.
	FormPermissionSchema Form = "permissionSchema"
)

// Origin says where a permission comes from.
type Origin struct {
	Form Form
	// Source is the name of the document, as in errors. It is "" for the catalogue, whose kinds share their permissions.
	Source string
}

// Trace is what only a traced compile keeps of a kind; see Documents.Traced.
type Trace struct {
	// Resource is the resource of the kind's objects. For a kind that is only the body of a subresource it is the usual plural.
	Resource runtimeschema.GroupResource
	// Names are the singular name and the short names that the kind's definition gives to its resource.
	Names []string
	// Served means that clients may send objects in this version.
	Served bool
	// Type is the type of the object.
	Type Type
}

// Trace returns what a traced compile keeps of the kind, nil if the compile was not traced. Callers must not change it.
func (k *Kind) Trace() *Trace { return k.parts.Trace }
