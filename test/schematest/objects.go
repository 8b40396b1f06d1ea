package schematest

import (
	"fmt"
	"strings"
)

// Definition is a namespaced CustomResourceDefinition of the group example.com with one version, v1.
type Definition struct {
	// Kind is the kind in the singular. Its resource is the same in lower case, with an s.
	Kind string
	// Verbs is the JSON list of the permission verbs of v1 (annotation fieldperm.dev/permission-verbs). "" for none.
	Verbs string
	// Properties are the fields of an object, in YAML flow style: "spec: {type: object, …}, status: …". They may be on many lines.
	Properties string
	// Subresources are those of v1 in YAML flow style. "" for none.
	Subresources string
}

// String returns the YAML of the definition.
func (d Definition) String() string {
	plural, metadata, version := strings.ToLower(d.Kind)+"s", "", ""
	if d.Verbs != "" {
		metadata = "\n  annotations:\n    fieldperm.dev/permission-verbs: |\n      {\"v1\": " + strings.NewReplacer("\n", "\n      ", "\t", "").Replace(strings.TrimSpace(d.Verbs)) + "}"
	}
	if d.Subresources != "" {
		version = "subresources: " + d.Subresources + ", "
	}
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[1]s.example.com%[2]s
spec:
  group: example.com
  scope: Namespaced
  names: {kind: %[3]s, plural: %[1]s}
  versions:
  - {name: v1, served: true, storage: true, %[4]sschema: {openAPIV3Schema: {type: object, properties: {%[5]s}}}}
`, plural, metadata, d.Kind, version, strings.NewReplacer("\n", " ", "\t", "").Replace(d.Properties))
}

// UncoveredSet returns an UncoveredPermissionSet in YAML. Its spec is in flow style.
func UncoveredSet(name, spec string) string {
	return "apiVersion: fieldperm.dev/v1alpha1\nkind: UncoveredPermissionSet\nmetadata: {name: " + name + "}\nspec: " + spec + "\n"
}

// PermissionSchema returns a PermissionSchema in YAML. Its permissions are entries in flow style.
func PermissionSchema(name, group, kind, permissions string) string {
	return "apiVersion: fieldperm.dev/v1alpha1\nkind: PermissionSchema\nmetadata: {name: " + name + "}\nspec: {group: '" + group + "', kind: " + kind + ", permissions: [" + permissions + "]}\n"
}
