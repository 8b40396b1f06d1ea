package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

const chartTitle = "Helm chart"

// chartSchema is as much of values.schema.json as is shown.
type chartSchema struct {
	Ref        string                 `json:"$ref"`
	Type       any                    `json:"type"`
	Enum       []string               `json:"enum"`
	Properties map[string]chartSchema `json:"properties"`
	Items      *chartSchema           `json:"items"`
	// Definitions are those that Ref names.
	Definitions map[string]chartSchema `json:"definitions"`
}

// chartRows returns a row for each value of the chart, in the order of values.yaml, whose comments say
// what they are.
func chartRows(root string) ([][]string, error) {
	dir := filepath.Join(root, "charts", "fieldperm")
	raw, err := os.ReadFile(filepath.Join(dir, "values.schema.json"))
	if err != nil {
		return nil, err
	}
	var schema chartSchema
	if err := json.Unmarshal(raw, &schema); err != nil {
		return nil, fmt.Errorf("values.schema.json: %w", err)
	}
	if raw, err = os.ReadFile(filepath.Join(dir, "values.yaml")); err != nil {
		return nil, err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(raw, &document); err != nil {
		return nil, fmt.Errorf("values.yaml: %w", err)
	}
	if len(document.Content) != 1 {
		return nil, errors.New("values.yaml: is empty")
	}
	rows := chart{definitions: schema.Definitions}
	if err := rows.values(document.Content[0], schema, ""); err != nil {
		return nil, err
	}
	return rows.rows, nil
}

// chart is the table while it is made.
type chart struct {
	definitions map[string]chartSchema
	rows        [][]string
}

func (c *chart) values(mapping *yaml.Node, schema chartSchema, path string) error {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		at := strings.TrimPrefix(path+"."+key.Value, ".")
		known, ok := schema.Properties[key.Value]
		if !ok {
			return fmt.Errorf("values.yaml: %q is not in values.schema.json: add it there", at)
		}
		nested := value.Kind == yaml.MappingNode && len(known.Properties) > 0
		meaning := comment(key.HeadComment)
		if !nested || meaning != "" {
			standard := ""
			if !nested {
				var err error
				if standard, err = written(value); err != nil {
					return fmt.Errorf("values.yaml: %q: %w", at, err)
				}
			}
			c.rows = append(c.rows, []string{code(at), c.typeOf(known), code(standard), meaning})
		}
		if nested {
			if err := c.values(value, known, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// written is a value on one line, nothing for an empty one.
func written(value *yaml.Node) (string, error) {
	if value.Kind == yaml.ScalarNode {
		if value.Tag == "!!null" {
			return "", nil
		}
		return value.Value, nil
	}
	if len(value.Content) == 0 {
		return "", nil
	}
	var decoded any
	if err := value.Decode(&decoded); err != nil {
		return "", err
	}
	raw, err := json.Marshal(decoded)
	return string(raw), err
}

func (c *chart) typeOf(schema chartSchema) string {
	if name := strings.TrimPrefix(schema.Ref, "#/definitions/"); name != "" {
		return c.typeOf(c.definitions[name])
	}
	if len(schema.Enum) > 0 {
		return codes(schema.Enum)
	}
	switch t := schema.Type.(type) {
	case []any:
		var out []string
		for _, one := range t {
			if one != "null" {
				out = append(out, fmt.Sprint(one))
			}
		}
		return strings.Join(out, " or ")
	case string:
		if t == "array" {
			if schema.Items == nil {
				return "list"
			}
			return "list of " + plural(c.typeOf(*schema.Items))
		}
		return t
	}
	return ""
}

// term is a line of a comment that explains one word.
var term = regexp.MustCompile(`^(\S+) {2,}(.*)$`)

// comment is the comment above a key, without the comment marks and without the text above an empty line.
func comment(text string) string {
	if at := strings.LastIndex(text, "\n\n"); at >= 0 {
		text = text[at:]
	}
	var out []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "#"))
		if found := term.FindStringSubmatch(line); found != nil {
			line = code(found[1]) + ": " + found[2]
		} else {
			line = plain(line)
		}
		out = append(out, line)
	}
	return sentence(strings.Join(out, " "))
}
