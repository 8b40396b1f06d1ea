package lint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/finding"
	"github.com/fieldperm/fieldperm/internal/manifest"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/load"
)

// File is a file with its content.
type File struct {
	Name string
	Raw  []byte
}

// object is one object of a file.
type object struct {
	file *File
	// source is the name of the object in errors of package load.
	source string
	ref    finding.Ref
	group  string
	raw    json.RawMessage
	// root is nil if the YAML library cannot read what is valid JSON. Then only the first line is known.
	root *yamlv3.Node
	// lines counts the lines of the file before the document of root.
	lines int
	docs  compile.Documents
	// entries are those of uses.
	entries []*use
	// definition is that of a CustomResourceDefinition, nil for others.
	definition *definition
}

// These are the kinds that are linted.
const (
	definitionKind = "CustomResourceDefinition"
	schemaKind     = "PermissionSchema"
	setKind        = "UncoveredPermissionSet"

	accepted = "CustomResourceDefinition (apiextensions.k8s.io/v1), PermissionSchema and UncoveredPermissionSet (fieldperm.dev/v1alpha1), Roles and ClusterRoles (rbac.authorization.k8s.io/v1), and a v1 List of them"
)

// read splits a file into objects. Roles and bindings are left to internal/rbac, which reads the file again.
func read(file *File) (objects []*object, roles bool, errs []error) {
	parts, err := manifest.Split(file.Raw)
	if err != nil {
		return nil, false, []error{fmt.Errorf("%s: %w: correct the syntax", file.Name, err)}
	}
	for i, part := range parts {
		source := file.Name
		if len(parts) > 1 {
			source = fmt.Sprintf("%s#%d", file.Name, i+1)
		}
		if part.Err != nil {
			text := strings.Join(strings.Fields(strings.TrimPrefix(part.Err.Error(), "yaml: ")), " ")
			errs = append(errs, fmt.Errorf("%s: is no YAML or JSON: %s: correct the syntax", file.Name, text))
			continue
		}
		o := &object{file: file, source: source, raw: part.JSON, root: parse(part.Text), lines: part.Line}
		more, isRole, faults := o.flatten()
		objects, roles, errs = append(objects, more...), roles || isRole, append(errs, faults...)
	}
	if len(parts) == 0 {
		errs = append(errs, fmt.Errorf("%s: is empty: give %s", file.Name, accepted))
	}
	return objects, roles, errs
}

// parse returns the root of a document, nil if it cannot be read.
func parse(text []byte) *yamlv3.Node {
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		// JSON may be indented with tabs, and YAML may not. A tab is as long as a space, and no string of JSON contains one.
		text = bytes.ReplaceAll(text, []byte("\t"), []byte(" "))
	}
	var document yamlv3.Node
	if err := yamlv3.Unmarshal(text, &document); err != nil || len(document.Content) != 1 {
		return nil
	}
	return document.Content[0]
}

// flatten returns the object, or the items of a list, without those of RBAC.
func (o *object) flatten() (objects []*object, roles bool, errs []error) {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(o.raw, &head); err != nil {
		return nil, false, []error{fmt.Errorf("%s: is no object with apiVersion and kind: give %s", o.place(""), accepted)}
	}
	group, _, _ := strings.Cut(head.APIVersion, "/")
	o.ref, o.group = finding.Ref{Kind: head.Kind, Name: head.Metadata.Name}, group
	switch {
	case head.APIVersion == "v1" && head.Kind == "List":
		for i, item := range head.Items {
			pointer := fmt.Sprintf("/items/%d", i)
			inner := &object{file: o.file, source: o.source + pointer, raw: item, lines: o.lines}
			if node, whole := nodeAt(o.root, pointer); whole {
				inner.root = node.value
			}
			more, isRole, faults := inner.flatten()
			objects, roles, errs = append(objects, more...), roles || isRole, append(errs, faults...)
		}
		return objects, roles, errs
	case group == "rbac.authorization.k8s.io":
		return nil, true, nil
	case head.APIVersion == "apiextensions.k8s.io/v1" && head.Kind == definitionKind, head.APIVersion == v1alpha1.GroupVersion.String() && (head.Kind == schemaKind || head.Kind == setKind):
		return []*object{o}, false, nil
	}
	return nil, false, []error{fmt.Errorf("%s: kind %q of %q has no verbs: give %s", o.place("/kind"), head.Kind, head.APIVersion, accepted)}
}

// decode decodes the object as fieldperm does.
func (o *object) decode() []error {
	var errs []error
	if o.docs, errs = load.Decode(o.source, o.raw); len(errs) > 0 {
		return errs
	}
	if o.ref.Kind == definitionKind {
		o.definition = newDefinition(o.raw)
	}
	return nil
}

// place returns "file:line:column" of a pointer, for errors.
func (o *object) place(pointer string) string {
	at := o.at(pointer)
	return fmt.Sprintf("%s:%d:%d", o.file.Name, at.line, at.column)
}
