package configfile

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	// Limits against hostile files: every field of a configuration is above this depth, and real files have fewer places.
	deepestPlace = 24
	mostPlaces   = 200_000
)

// places stores the line of the value at each path.
type places struct {
	lines    map[string]int
	text     []string
	report   func(path string, line int, message, cure string)
	negation func(expression string) string
}

// line returns the line of a path, or of its nearest parent with a known line.
func (p *places) line(path string) int {
	for {
		if line, ok := p.lines[path]; ok {
			return max(1, line)
		}
		if path == "" {
			return 1
		}
		path = parent(path)
	}
}

// index records the places below a node. It also reports YAML that is valid but that the author probably did not intend: tags and
// duplicate keys.
func (p *places) index(node *yaml.Node, path string, line, depth int) {
	if depth > deepestPlace || len(p.lines) > mostPlaces {
		return
	}
	p.lines[path] = line
	if node.Kind == yaml.AliasNode {
		p.index(node.Alias, path, line, depth+1)
		return
	}
	p.tag(node, path, line)
	switch node.Kind {
	default:
	case yaml.MappingNode:
		p.mapping(node, path, depth)
	case yaml.SequenceNode:
		for i, one := range node.Content {
			p.index(one, item(path, i), one.Line, depth+1)
		}
	}
}

func (p *places) mapping(node *yaml.Node, path string, depth int) {
	first := map[string]int{}
	var merged []*yaml.Node
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.Tag == "!!merge" {
			merged = append(merged, value)
			continue
		}
		if key.Kind != yaml.ScalarNode {
			p.report(path, key.Line, "has a key that is not a text", "write a field's name")
			continue
		}
		at := child(path, key.Value)
		if line, ok := first[key.Value]; ok {
			p.report(at, key.Line, fmt.Sprintf("is there twice, first on line %d", line), "leave one of the two out")
			continue
		}
		first[key.Value] = key.Line
		p.index(value, at, key.Line, depth+1)
	}
	for _, one := range merged {
		p.merge(one, path, first, depth+1)
	}
}

// merge records the places of the values that a merge key adds. It reports a key that is both merged and present, as kube-apiserver
// does; in YAML the present one would win.
func (p *places) merge(node *yaml.Node, path string, first map[string]int, depth int) {
	if depth > deepestPlace || len(p.lines) > mostPlaces {
		return
	}
	switch node.Kind {
	default:
	case yaml.AliasNode:
		p.merge(node.Alias, path, first, depth+1)
	case yaml.SequenceNode:
		for _, one := range node.Content {
			p.merge(one, path, first, depth+1)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			key := node.Content[i]
			if key.Kind != yaml.ScalarNode || key.Tag == "!!merge" {
				continue
			}
			at := child(path, key.Value)
			if line, ok := first[key.Value]; ok {
				p.report(at, line, fmt.Sprintf("is there twice: it also comes in with <<, from line %d", key.Line),
					"leave it out of one of the two: a strict reader lets neither win")
				continue
			}
			first[key.Value] = key.Line
			p.index(node.Content[i+1], at, key.Line, depth+1)
		}
	}
}

// tag reports a YAML tag. In practice a tag is a negation without quotes. YAML drops the tag, so a condition would be true for
// exactly the requests for which it should be false.
func (p *places) tag(node *yaml.Node, path string, line int) {
	if node.Line < 1 || node.Line > len(p.text) {
		return
	}
	runes := []rune(p.text[node.Line-1])
	if node.Column < 1 || node.Column > len(runes) {
		return
	}
	text := string(runes[node.Column-1:])
	if strings.HasPrefix(text, "&") {
		_, text, _ = strings.Cut(text, " ")
		text = strings.TrimSpace(text)
	}
	switch {
	case !strings.HasPrefix(text, "!"):
		return
	case strings.HasPrefix(text, "!!"):
		name, _, _ := strings.Cut(text, " ")
		switch name {
		case "!!str", "!!bool", "!!int", "!!null", "!!map", "!!seq":
			return
		}
		p.report(path, line, fmt.Sprintf("has the YAML tag %s, which changes its value", quoted(name)), "leave the tag out")
		return
	}
	if before, _, ok := strings.Cut(text, " #"); ok {
		text = before
	}
	text = strings.TrimSpace(text)
	cure := "put the whole value in quotes"
	if name := path[strings.LastIndex(path, ".")+1:]; strings.Contains(strings.ToLower(name), "expression") {
		cure = "put the expression in quotes: " + name + ": " + quotedForYAML(p.negation(text))
	}
	p.report(path, line, fmt.Sprintf("starts with an exclamation mark without quotes, which YAML reads as the tag %s and drops", quoted(strings.Fields(text)[0])), cure)
}

// quotedForYAML returns a value in quotes of the kind that the value does not contain.
func quotedForYAML(value string) string {
	switch {
	case !strings.ContainsAny(value, `"\`):
		return `"` + value + `"`
	case !strings.Contains(value, "'"):
		return "'" + value + "'"
	}
	return "'" + strings.ReplaceAll(value, "'", "''") + "'"
}
