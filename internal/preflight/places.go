package preflight

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

// source matches FILE, FILE#N for one of several documents, FILE/items/N for an item of a list, or both.
var source = regexp.MustCompile(`^(.+?)(?:#([0-9]+))?((?:/items/[0-9]+)*)$`)

// placed returns the text of a fault of a schema document, with the line in its file if it is known.
func placed(fault *schema.Error) string {
	m := source.FindStringSubmatch(fault.Source)
	if m == nil || fault.Pointer != "" && !strings.HasPrefix(fault.Pointer, "/") {
		return fault.Error() // A fault of text that is not YAML already has its line.
	}
	file, pointer, number := m[1], m[3]+fault.Pointer, 1
	if m[2] != "" {
		number, _ = strconv.Atoi(m[2]) // The group has digits only. A number that overflows matches no document of the file.
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

// lineOf returns the line of a JSON pointer (RFC 6901), or of its nearest parent, in a document of the file. number counts the
// non-empty documents from 1.
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

// below returns the child of a node with a name or an index, and the line where it starts.
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
