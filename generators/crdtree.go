package generators

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

// crdTree is a CustomResourceDefinition as YAML nodes, which keep the comments and the order of the author.
type crdTree struct {
	source   string
	document *yamlv3.Node
	// json is the same document as JSON.
	json []byte
}

func parseCRD(source string, raw []byte) (*crdTree, []error) {
	t := &crdTree{source: source, json: raw}
	var err error
	isJSON := bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{"))
	if !isJSON {
		if t.json, err = yaml.YAMLToJSONStrict(raw); err != nil {
			return nil, []error{t.fault("is no YAML or JSON: %v: correct the syntax", err)}
		}
		if t.document, err = parseOne(raw); err != nil {
			return nil, []error{t.fault("%v: give one file with one CustomResourceDefinition", err)}
		}
	}
	// JSON nodes would be written as JSON again, inside YAML. The value of an anchor may have permission keys that apply at one place
	// only.
	if isJSON || hasAlias(t.document) {
		if raw, err = blockYAML(t.json); err != nil {
			return nil, []error{t.fault("is no YAML or JSON: %v: give one file with one CustomResourceDefinition", err)}
		}
		if t.document, err = parseOne(raw); err != nil {
			return nil, []error{t.fault("%v: give one file with one CustomResourceDefinition", err)}
		}
	}
	root := t.document.Content[0]
	if kind := child(root, "kind"); kind == nil || kind.Value != "CustomResourceDefinition" {
		return nil, []error{t.fault("is no CustomResourceDefinition: give one with kind: CustomResourceDefinition")}
	}
	if version := child(root, "apiVersion"); version == nil || version.Value != "apiextensions.k8s.io/v1" {
		return nil, []error{t.fault("is no CustomResourceDefinition of apiextensions.k8s.io/v1: convert it to that version")}
	}
	return t, nil
}

func (t *crdTree) fault(format string, args ...any) error {
	return (&definition{source: t.source}).fault("", format, args...)
}

// parseOne returns the only document that is not empty.
func parseOne(raw []byte) (*yamlv3.Node, error) {
	decoder := yamlv3.NewDecoder(bytes.NewReader(raw))
	var only *yamlv3.Node
	for {
		var document yamlv3.Node
		err := decoder.Decode(&document)
		switch {
		case errors.Is(err, io.EOF) && only == nil:
			return nil, errors.New("is empty")
		case errors.Is(err, io.EOF) && only.Content[0].Kind != yamlv3.MappingNode:
			return nil, errors.New("is no object")
		case errors.Is(err, io.EOF):
			return only, nil
		case err != nil:
			return nil, err
		case len(document.Content) == 0 || document.Content[0].Tag == "!!null":
		case only != nil:
			return nil, errors.New("holds more than one document")
		default:
			only = &document
		}
	}
}

func hasAlias(n *yamlv3.Node) bool {
	for _, c := range n.Content {
		if hasAlias(c) {
			return true
		}
	}
	return n.Kind == yamlv3.AliasNode
}

// blockYAML converts JSON into YAML with sorted keys and unchanged numbers.
func blockYAML(raw []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if decoder.More() {
		return nil, errors.New("holds more than one document")
	}
	return yaml.Marshal(value)
}

// finish removes the permission keys from the schemas, sets the annotation unless value is empty, or removes it, and returns the result.
func (t *crdTree) finish(value string, remove bool) ([]byte, error) {
	root := t.document.Content[0]
	if versions := child(child(root, "spec"), "versions"); versions != nil {
		for _, version := range versions.Content {
			strip(child(child(version, "schema"), "openAPIV3Schema"))
		}
	}
	if value != "" {
		annotations := ensure(ensure(root, "metadata"), "annotations")
		set(annotations, v1alpha1.PermissionVerbsAnnotation, &yamlv3.Node{Kind: yamlv3.ScalarNode, Tag: "!!str", Style: yamlv3.SingleQuotedStyle, Value: value})
	}
	if remove {
		unset(child(child(root, "metadata"), "annotations"), v1alpha1.PermissionVerbsAnnotation)
	}
	var b bytes.Buffer
	encoder := yamlv3.NewEncoder(&b)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := errors.Join(encoder.Encode(t.document), encoder.Close()); err != nil {
		return nil, t.fault("%v", err)
	}
	// The encoder wraps text. It must not change its meaning, because the text may be a rule in CEL.
	var before, after any
	if err := errors.Join(t.document.Decode(&before), yamlv3.Unmarshal(b.Bytes(), &after)); err != nil {
		return nil, t.fault("cannot be written as YAML again: %v: give it as JSON", err)
	}
	if !reflect.DeepEqual(before, after) {
		return nil, t.fault("would not be the same when written as YAML again: give it as JSON")
	}
	return b.Bytes(), nil
}

// strip removes the permission keys from a schema. It visits the same places as package load. It leaves values that are not schemas
// (defaults, enums) and properties with such a name unchanged.
func strip(node *yamlv3.Node) {
	if node == nil || node.Kind != yamlv3.MappingNode {
		return
	}
	kept := node.Content[:0:0]
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if strings.HasPrefix(key.Value, "x-kubernetes-permission") {
			continue
		}
		kept = append(kept, key, value)
		switch key.Value {
		case "properties":
			for j := 1; j < len(value.Content); j += 2 {
				strip(value.Content[j])
			}
		case "items", "additionalProperties":
			strip(value)
		}
	}
	node.Content = kept
}

// child returns the value of a key, nil if there is none.
func child(node *yamlv3.Node, key string) *yamlv3.Node {
	if node == nil || node.Kind != yamlv3.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return node.Content[i+1]
		}
	}
	return nil
}

// ensure returns the object at a key, and adds it if there is none.
func ensure(node *yamlv3.Node, key string) *yamlv3.Node {
	if c := child(node, key); c != nil && c.Kind == yamlv3.MappingNode {
		return c
	}
	c := &yamlv3.Node{Kind: yamlv3.MappingNode, Tag: "!!map"}
	set(node, key, c)
	return c
}

func set(node *yamlv3.Node, key string, value *yamlv3.Node) {
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			node.Content[i+1] = value
			return
		}
	}
	node.Content = append(node.Content, &yamlv3.Node{Kind: yamlv3.ScalarNode, Tag: "!!str", Value: key}, value)
}

func unset(node *yamlv3.Node, key string) {
	if node == nil || node.Kind != yamlv3.MappingNode {
		return
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			node.Content = append(node.Content[:i:i], node.Content[i+2:]...)
			return
		}
	}
}
