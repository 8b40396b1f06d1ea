package authn

import (
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/fieldperm/fieldperm/internal/configfile"
)

func problem(file string, data []byte, key, message, cure string) configfile.Problem {
	return configfile.Problem{File: file, Line: line(data, key), Key: key, Message: message, Cure: cure}
}

// step is one of a key such as jwt[0].issuer.url: a name, or an index.
var step = regexp.MustCompile(`[^.\[\]]+`)

// line returns where the value of a key stands in a valid file, or what is nearest above it.
func line(data []byte, key string) int {
	var document yaml.Node
	if yaml.Unmarshal(data, &document) != nil || len(document.Content) == 0 {
		return 1
	}
	node, at := document.Content[0], 1
	for _, name := range step.FindAllString(key, -1) {
		next, line := below(node, name)
		if next == nil {
			break
		}
		node, at = next, line
	}
	return at
}

func below(node *yaml.Node, name string) (*yaml.Node, int) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	switch node.Kind {
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(name); err == nil && i < len(node.Content) {
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
