package checkconfig

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fieldperm/fieldperm/schema"
)

// source is FILE, FILE#N for one of several documents, FILE/items/N for one of a list, or both.
var source = regexp.MustCompile(`^(.+?)(?:#([0-9]+))?((?:/items/[0-9]+)*)$`)

// placed renders a fault of a schema document with the line in its file, where there is one.
func placed(fault *schema.Error) string {
	m := source.FindStringSubmatch(fault.Source)
	if m == nil || fault.Pointer != "" && !strings.HasPrefix(fault.Pointer, "/") {
		return fault.Error() // What is no YAML has its line in place of a pointer.
	}
	file, pointer, number := m[1], m[3]+fault.Pointer, 1
	if m[2] != "" {
		number, _ = strconv.Atoi(m[2]) // Digits; what overflows is no document of the file.
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return fault.Error()
	}
	text := fmt.Sprintf("%s:%d: ", file, lineOf(data, number, pointer))
	if pointer != "" {
		text += pointer + ": "
	}
	return text + fault.Message
}

// lineOf returns the line of a JSON pointer (RFC 6901) in a document that is not empty, counting from 1,
// or of what is nearest above it.
func lineOf(data []byte, number int, pointer string) int {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document yaml.Node
	for number > 0 {
		document = yaml.Node{}
		if decoder.Decode(&document) != nil {
			return 1
		}
		if len(document.Content) > 0 && document.Content[0].Tag != "!!null" {
			number--
		}
	}
	node := document.Content[0]
	line := node.Line
	for _, step := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		next, at := below(node, strings.NewReplacer("~1", "/", "~0", "~").Replace(step))
		if next == nil {
			break
		}
		node, line = next, at
	}
	return line
}

// below returns a node's child of a name or an index, and the line where it begins.
func below(node *yaml.Node, name string) (*yaml.Node, int) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	switch node.Kind {
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(node.Content) {
			return node.Content[i], node.Content[i].Line
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == name {
				return node.Content[i+1], node.Content[i].Line
			}
		}
	default:
	}
	return nil, 0
}
