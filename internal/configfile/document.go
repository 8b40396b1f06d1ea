package configfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

const (
	// largestFile is larger than a file with 64 issuers and a bundle of certificates for each, in bytes.
	largestFile = 8 << 20
	// most is how many faults are listed, so that they fit on a screen. More usually have one cause, or the file is of another kind.
	most = 20
	// mostSearched bounds the search for the line of a fault, in lines times bytes.
	mostSearched = 16 << 20
)

// document is one file during reading.
type document struct {
	file  string
	data  []byte
	lines []string
	// secret is whether the file may contain credentials. Faults of its syntax and of its users quote nothing.
	secret bool
	// root has the positions, and tree the values, without those that do not fit their type. tree is nil if the file has none.
	root     *yaml.Node
	tree     map[string]any
	problems Problems
	warnings []string
}

// read parses a file as k8s.io/apiserver does: as JSON if it starts with a brace, otherwise as YAML.
func read(file string, data []byte, secret bool) *document {
	// A byte that is not UTF-8 becomes a control character.
	text := strings.ToValidUTF8(strings.TrimPrefix(string(data), "\ufeff"), "\x00")
	d := &document{file: file, data: data, lines: strings.Split(strings.TrimRight(text, "\n"), "\n"), secret: secret, root: &yaml.Node{Kind: yaml.MappingNode, Line: 1}}
	control := strings.IndexFunc(text, func(r rune) bool { return r < ' ' && !strings.ContainsRune("\n\r\t", r) || r == 0x7f })
	raw, isJSON := data, utilyaml.IsJSONBuffer(data)
	switch {
	case len(data) > largestFile:
		d.add("", 1, fmt.Sprintf("file has %d bytes, at most %d are read", len(data), largestFile), "give a configuration file")
		return d
	case control >= 0:
		d.add("", 1+strings.Count(text[:control], "\n"), "a byte here is not UTF-8, or a control character", "save the file as UTF-8, without control characters")
		return d
	case !isJSON:
		var err error
		if raw, err = sigsyaml.YAMLToJSONStrict(data); err == nil {
			err = d.single()
		}
		if err != nil {
			d.notYAML(err)
			return d
		}
	}
	var tree any
	if err := json.Unmarshal(raw, &tree, jsontext.AllowInvalidUTF8(true)); err != nil {
		line := 1
		if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
			line += bytes.Count(raw[:syntax.ByteOffset], []byte("\n"))
		}
		d.add("", line, "is not JSON: "+strings.TrimPrefix(err.Error(), "jsontext: "), "a file that starts with { is read as JSON: mend it, or write it as YAML without the outer braces")
		return d
	}
	if isJSON && d.single() != nil {
		// Some escapes of JSON are none of YAML. Written anew, everything is on line 1.
		var root yaml.Node
		if again, err := json.Marshal(tree); err == nil && yaml.Unmarshal(again, &root) == nil {
			d.root = root.Content[0]
		}
	}
	d.tree, _ = tree.(map[string]any)
	if d.tree == nil {
		d.add("", d.root.Line, "file is not a mapping, or empty", "write a configuration that starts with apiVersion and kind")
	}
	if !isJSON {
		walk(d.root, "", 0, d.drops)
	}
	return d
}

// single reads the positions. It returns an error if another document follows the first, which would be ignored.
func (d *document) single() error {
	decoder := yaml.NewDecoder(bytes.NewReader(d.data))
	for n := 0; ; n++ {
		var next yaml.Node
		switch err := decoder.Decode(&next); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case n > 0 && next.Content[0].ShortTag() != "!!null":
			return fmt.Errorf("line %d: a second document starts here, and would be ignored", next.Content[0].Line)
		case n == 0:
			d.root = next.Content[0]
		}
	}
}

var (
	onLine = regexp.MustCompile(`line (\d+): (.*)`)
	twice  = regexp.MustCompile(`already set in map|second document`)
)

// notYAML reports a fault of the syntax. It is on the line after the longest beginning of the file that is YAML; the parser names the
// line where the mapping around it starts.
func (d *document) notYAML(err error) {
	line, message := 0, strings.TrimPrefix(err.Error(), "yaml: ")
	for _, found := range onLine.FindAllStringSubmatch(err.Error(), -1) {
		line, _ = strconv.Atoi(found[1])
		if message = found[2]; twice.MatchString(message) {
			d.add("", line, message, "keep one of the two")
		}
	}
	if len(d.problems) > 0 {
		return
	}
	for n := len(d.lines); n > 0 && len(d.lines)*len(d.data) < mostSearched; n-- {
		if yaml.Unmarshal([]byte(strings.Join(d.lines[:n], "\n")), new(yaml.Node)) == nil {
			if n < len(d.lines) {
				line = n + 1
			}
			break
		}
	}
	message = "is not YAML: " + message
	if line > 0 {
		message += ", in " + quoted(strings.TrimSpace(d.lines[min(line, len(d.lines))-1]))
	}
	if d.secret {
		message = "is not YAML"
	}
	d.add("", line, message, `indent with spaces, and put a value in quotes as a whole if it holds ": " or starts with a quote, !, *, & or @`)
}

// drops reports what the YAML parser drops. In practice a tag is a negation without quotes: a condition would be true for exactly
// the requests for which it should be false.
func (d *document) drops(path string, key, value *yaml.Node) {
	if key != nil && key.Kind != yaml.ScalarNode {
		d.add(parent(path), key.Line, "has a key that is not a text", "write a field's name")
	}
	text := d.lines[min(value.Line, len(d.lines))-1]
	if !strings.Contains(text, "!") {
		return
	}
	line := []rune(text)
	source := strings.TrimSpace(strings.TrimPrefix(string(line[min(value.Column-1, len(line)):]), "&"+value.Anchor))
	tagged := value.Style&yaml.TaggedStyle != 0 || strings.HasPrefix(source, "!") // The node has no trace of the tag "!".
	if !tagged || strings.HasPrefix(source, "!!") && slices.Contains([]string{"!!str", "!!bool", "!!int", "!!null", "!!map", "!!seq"}, value.ShortTag()) {
		return
	}
	if d.hides(path) {
		source = "!…"
	}
	d.report(path, quoted(source)+" starts with an exclamation mark without quotes, which YAML reads as a tag and drops", "put the whole value in quotes, or leave the tag out")
}

// hides reports whether the value at a path may be a credential.
func (d *document) hides(path string) bool { return d.secret && strings.HasPrefix(path, "users") }

// line returns the line of a path, or of its nearest parent.
func (d *document) line(path string) int {
	_, line, _ := find(d.root, d.root.Line, path)
	return line
}

// text returns the text at a path, "" if there is none.
func (d *document) text(path string) string {
	if node, _, found := find(d.root, 0, path); found {
		return node.Value
	}
	return ""
}

// report adds a fault at a path, unless the path or a parent already has one: more would follow from it.
func (d *document) report(path, message, cure string) {
	if !d.covered(path) {
		d.add(path, d.line(path), message, cure)
	}
}

func (d *document) covered(path string) bool {
	for ; path != ""; path = parent(path) {
		if slices.ContainsFunc(d.problems, func(p Problem) bool { return p.Key == path }) {
			return true
		}
	}
	return false
}

func (d *document) add(path string, line int, message, cure string) {
	if len(d.problems) <= most {
		d.problems = append(d.problems, Problem{File: d.file, Line: max(1, line), Key: oneLine(path), Message: oneLine(message), Cure: cure})
	}
}

func (d *document) warn(path, message, cure string) {
	d.warnings = append(d.warnings, Problem{File: d.file, Line: d.line(path), Key: oneLine(path), Message: oneLine(message), Cure: cure}.Error())
}

// result returns the faults in the order of lines, those of this file before those of the files that it names.
func (d *document) result() error {
	if len(d.problems) == 0 {
		return nil
	}
	rank := func(p Problem) string { return strings.TrimPrefix(p.File, d.file) } // "" for this file
	slices.SortStableFunc(d.problems, func(a, b Problem) int {
		return cmp.Or(strings.Compare(rank(a), rank(b)), a.Line-b.Line, strings.Compare(a.Key, b.Key))
	})
	if d.problems = slices.Compact(d.problems); len(d.problems) > most {
		last := &d.problems[most-1]
		last.Key, last.Message, last.Cure = "", "more faults from here on", "mend those above first"
		d.problems = d.problems[:most]
	}
	return d.problems
}

// find returns the node at a path such as authorizers[0].name and its line: for a field, that of its key. If the file does not have
// it, found is false, and the node and line are those of the nearest parent.
func find(node *yaml.Node, line int, path string) (at *yaml.Node, atLine int, found bool) {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if path == "" {
		return node, line, true
	}
	switch node.Kind {
	case yaml.SequenceNode:
		number, rest, _ := strings.Cut(strings.TrimPrefix(path, "["), "]")
		if i, err := strconv.Atoi(number); err == nil && i >= 0 && i < len(node.Content) {
			return find(node.Content[i], node.Content[i].Line, strings.TrimPrefix(rest, "."))
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			key, value := node.Content[i], node.Content[i+1]
			if rest, ok := strings.CutPrefix(path, key.Value); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
				return find(value, key.Line, strings.TrimPrefix(rest, "."))
			}
			if key.Tag != "!!merge" {
				continue
			}
			merged := []*yaml.Node{value}
			if value.Kind == yaml.SequenceNode {
				merged = value.Content
			}
			for _, one := range merged {
				if at, atLine, found = find(one, line, path); found {
					return at, atLine, true
				}
			}
		}
	default:
	}
	return node, line, false
}

// deepest is a depth that no field of a configuration has.
const deepest = 24

// walk visits every key and every value with its path, each once, at its anchor if it has one.
func walk(node *yaml.Node, path string, depth int, visit func(path string, key, value *yaml.Node)) {
	if depth > deepest {
		return
	}
	for i, value := range node.Content {
		at, key := item(path, i), (*yaml.Node)(nil)
		if node.Kind == yaml.MappingNode {
			if i%2 == 0 {
				continue
			}
			key = node.Content[i-1]
			at = child(path, key.Value)
		}
		visit(at, key, value)
		walk(value, at, depth+1, visit)
	}
}

// child and item return the path of a key or an item below a path.
func child(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func item(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// parent returns the parent of a path, "" at the root.
func parent(path string) string { return path[:max(0, strings.LastIndexAny(path, ".["))] }
