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

// origin returns the origin of the entries of a document.
func (d *PermissionDocument) origin() Origin {
	if d.Rank <= RankCatalogue {
		return Origin{Form: FormCatalogue}
	}
	return Origin{d.Form, d.Source}
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
func (k *Kind) Trace() *Trace { return k.trace }

func (c *compiler) traceOf(gvk runtimeschema.GroupVersionKind) *Trace {
	if !c.docs.Traced {
		return nil
	}
	t := c.owner[gvk]
	return &Trace{Resource: t.resource(gvk), Names: t.OtherNames[gvk], Served: c.isServed(gvk), Type: Type{shapeOf(gvk, c.owner)}}
}

// Origins returns where the permission comes from: first the source of the verb, then the sources that make it a barrier in another
// version, if they are others. It is nil for the verb of the root, and if the compile was not traced. Callers must not change the slice.
func (p *Permission) Origins() []Origin { return p.origins }

// Excluded reports whether the permission is a barrier for all values.
func (p *Permission) Excluded() bool { return p.excluded }

// ExcludedWhen returns the conditions on values, in CEL, under which the permission is a barrier: each alone is enough.
func (p *Permission) ExcludedWhen() []string {
	var out []string
	for i := range p.excludedWhen {
		out = append(out, p.excludedWhen[i].text)
	}
	return out
}

// Expression returns the CEL expression that makes the parameter from the value of ParameterName, "" for none.
func (p *Permission) Expression() string { return p.expressionText }
