package audit

import (
	"bytes"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
)

// Lines finds the lines of objects in a file. The zero Lines knows none.
type Lines struct{ objects map[Ref]*yamlv3.Node }

// NewLines reads a file of YAML or JSON documents. Documents that it cannot read have no lines: the decoder of the objects reports them.
func NewLines(content []byte) *Lines {
	out := &Lines{objects: map[Ref]*yamlv3.Node{}}
	decoder := yamlv3.NewDecoder(bytes.NewReader(content))
	for {
		var document yamlv3.Node
		if err := decoder.Decode(&document); err != nil {
			return out
		}
		if len(document.Content) == 1 {
			out.add(document.Content[0])
		}
	}
}

// add adds an object, or the items of a list.
func (l *Lines) add(object *yamlv3.Node) {
	kind := field(object, "kind")
	if kind == nil {
		return
	}
	if items := field(object, "items"); items != nil && strings.HasSuffix(kind.Value, "List") {
		of := strings.TrimSuffix(kind.Value, "List")
		for _, item := range items.Content {
			if of != "" && field(item, "kind") == nil {
				l.named(item, of)
				continue
			}
			l.add(item)
		}
		return
	}
	l.named(object, kind.Value)
}

func (l *Lines) named(object *yamlv3.Node, kind string) {
	r := Ref{Kind: kind}
	metadata := field(object, "metadata")
	if name := field(metadata, "name"); name != nil {
		r.Name = name.Value
	}
	if namespace := field(metadata, "namespace"); namespace != nil && kind != clusterRoleKind && kind != clusterRoleBindingKind {
		r.Namespace = namespace.Value
	}
	l.objects[r] = object
}

// Of returns the function that finds the line of a path in an object: of the nearest place above, if the path is not there.
func (l *Lines) Of(object Ref) func(path string) int {
	node := l.objects[object]
	if node == nil {
		return nil
	}
	return func(path string) int {
		at, line := node, node.Line
		for step := range strings.SplitSeq(strings.ReplaceAll(path, "[", ".["), ".") {
			if step == "" {
				continue
			}
			if at = child(at, step); at == nil {
				break
			}
			line = at.Line
		}
		return line
	}
}

// child returns the field or the item that a step names.
func child(n *yamlv3.Node, step string) *yamlv3.Node {
	number, isItem := strings.CutPrefix(step, "[")
	if !isItem {
		return field(n, step)
	}
	if n = resolved(n); n == nil || n.Kind != yamlv3.SequenceNode {
		return nil
	}
	if i, err := strconv.Atoi(strings.TrimSuffix(number, "]")); err == nil && i < len(n.Content) {
		return n.Content[i]
	}
	return nil
}

func field(n *yamlv3.Node, name string) *yamlv3.Node {
	if n = resolved(n); n == nil || n.Kind != yamlv3.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

// resolved follows an alias.
func resolved(n *yamlv3.Node) *yamlv3.Node {
	if n != nil && n.Kind == yamlv3.AliasNode {
		return n.Alias
	}
	return n
}
