package configfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// largestFile is larger than a file with 64 issuers and a bundle of certificates for each, in bytes.
const largestFile = 8 << 20

const notYAML = "is not YAML: "

// tree is a parsed file: the values as k8s.io/apiserver's decoder sees them, and the YAML node with their positions, nil if there
// is none.
type tree struct {
	value any
	root  *yaml.Node
}

// parse reads a file as JSON if it starts with a brace, otherwise as YAML, as k8s.io/apiserver's decoder does. The fault is nil if
// the file can be parsed.
func parse(file string, data []byte) (tree, *Problem) {
	fault := func(line int, message, cure string) (tree, *Problem) {
		return tree{}, &Problem{File: file, Line: max(1, line), Message: oneLine(message), Cure: cure}
	}
	if len(data) > largestFile {
		return fault(1, fmt.Sprintf("file has %d bytes, at most %d are read", len(data), largestFile), "give a configuration file")
	}
	if bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff}) {
		return fault(1, "file is UTF-16", "save it as UTF-8")
	}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return fault(lineAt(data, i), fmt.Sprintf("byte 0x%02x is not UTF-8", data[i]), "save the file as UTF-8")
		case r < ' ' && r != '\n' && r != '\r' && r != '\t', r == 0x7f:
			return fault(lineAt(data, i), fmt.Sprintf("control character 0x%02x", r), "remove it")
		}
		i += size
	}
	if utilyaml.IsJSONBuffer(data) {
		return parseJSON(data, fault)
	}
	return parseYAML(data, fault)
}

// lineAt returns the line of the byte at an offset.
func lineAt(data []byte, offset int) int {
	return 1 + bytes.Count(data[:min(max(0, offset), len(data))], []byte{'\n'})
}

func parseJSON(data []byte, fault func(int, string, string) (tree, *Problem)) (tree, *Problem) {
	var out tree
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	err := decoder.Decode(&out.value)
	offset := decoder.InputOffset()
	if err == nil {
		if _, err = decoder.Token(); errors.Is(err, io.EOF) {
			err = nil
		} else {
			err = errors.New("something stands behind the configuration")
		}
	}
	if err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			offset = syntax.Offset
		}
		return fault(lineAt(data, int(offset)), "is not JSON: "+err.Error(), "a file that starts with { is read as JSON: mend it, or write it as YAML without the outer braces")
	}
	// Some JSON cannot be parsed as YAML because of its escapes. Its faults have only the first line as position.
	var root yaml.Node
	if yaml.Unmarshal(data, &root) == nil {
		out.root = &root
	}
	return out, nil
}

func parseYAML(data []byte, fault func(int, string, string) (tree, *Problem)) (tree, *Problem) {
	var root, next yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	err := decoder.Decode(&root)
	if errors.Is(err, io.EOF) || err == nil && isNull(&root) {
		return fault(1, "file is empty", "write a configuration that starts with apiVersion and kind")
	}
	if err != nil {
		line, message, cure := explainSyntax(data, err)
		return fault(line, message, cure)
	}
	for err == nil {
		if err = decoder.Decode(&next); err == nil && !isNull(&next) {
			return fault(next.Content[0].Line, "a second document starts here, and would be ignored", "keep one document: remove --- and what follows it")
		}
	}
	if !errors.Is(err, io.EOF) {
		return fault(lineAt(data, bytes.LastIndex(data, []byte("\n---"))+1), "a second document follows, which is not YAML: "+message(err), "keep one document")
	}
	raw, err := sigsyaml.YAMLToJSON(data)
	if err != nil {
		line, message, cure := explainSyntax(data, err)
		return fault(line, message, cure)
	}
	out := tree{root: &root}
	decode := json.NewDecoder(bytes.NewReader(raw))
	decode.UseNumber()
	if err := decode.Decode(&out.value); err != nil {
		return fault(1, "cannot be written as JSON: "+err.Error(), "use texts, numbers, booleans, lists and mappings only")
	}
	return out, nil
}

func isNull(root *yaml.Node) bool {
	return len(root.Content) == 0 || root.Content[0].Kind == yaml.ScalarNode && root.Content[0].Tag == "!!null"
}

var yamlPosition = regexp.MustCompile(`^(?:error converting YAML to JSON: )?yaml: (?:unmarshal errors:\s*)?(?:line (\d+): )?`)

func message(err error) string {
	return yamlPosition.ReplaceAllString(err.Error(), "")
}

// explainSyntax returns the line of a YAML fault, a description, and the cure for its most common cause.
func explainSyntax(data []byte, err error) (line int, text, cure string) {
	text = message(err)
	if found := yamlPosition.FindStringSubmatch(err.Error()); found != nil && found[1] != "" {
		line, _ = strconv.Atoi(found[1])
	}
	lines := strings.Split(string(data), "\n")
	if exact := firstBadLine(lines); exact > 0 {
		line = exact
	}
	line = min(max(1, line), len(lines))
	at := lines[line-1]
	value := at
	if _, after, ok := strings.Cut(at, ": "); ok {
		value = strings.TrimSpace(after)
	}
	indent := at[:len(at)-len(strings.TrimLeft(at, " \t"))]
	cure = "check indentation and quotes"
	key, plain := "", ""
	if found := keyAndValue.FindStringSubmatch(at); found != nil {
		key, plain = strings.TrimLeft(found[1], " -"), found[2]
	}
	switch {
	case strings.Contains(indent, "\t"):
		cure = "indent with spaces: YAML has no tabs"
	case strings.Contains(at, ": !"):
		cure = "put a value that starts with ! in quotes"
	case strings.HasPrefix(value, "*"), strings.Contains(text, "anchor"):
		cure = "put a value that starts with * in quotes"
	case strings.HasPrefix(value, "'"), strings.HasPrefix(value, `"`):
		cure = "quotes must hold the whole value: put it in quotes of the kind that it does not have inside, and nothing behind them"
	case strings.Contains(text, "mapping values") && strings.Contains(plain, ": "):
		cure = "put the whole value in quotes: " + key + quotedForYAML(plain)
	case strings.Contains(text, "mapping values"):
		cure = `check indentation, and put a value that holds ": " in quotes`
	case strings.Contains(text, "cannot start any token"):
		cure = "put the value in quotes"
	case strings.Contains(text, "aliasing"):
		cure = "write values out in place of aliases"
	}
	return line, notYAML + text, cure
}

// mostProbes bounds the search for a line, whose cost is quadratic.
const mostProbes = 400

// firstBadLine returns the line after the longest prefix of a file that is valid YAML, 0 if the search is not possible. The line in
// the parser's error, if it has one, is where the mapping around the fault starts.
func firstBadLine(lines []string) int {
	if len(lines) > mostProbes {
		return 0
	}
	good, text := 0, ""
	for i, line := range lines {
		text += line + "\n"
		var root yaml.Node
		if yaml.Unmarshal([]byte(text), &root) == nil {
			good = i + 1
		}
	}
	for bad := good; bad < len(lines); bad++ {
		if trimmed := strings.TrimSpace(lines[bad]); trimmed != "" && !strings.HasPrefix(trimmed, "#") {
			return bad + 1
		}
	}
	return 0
}

var keyAndValue = regexp.MustCompile(`^(\s*(?:- +)*[A-Za-z][\w-]*: +)(\S.*)$`)

// quoteLine returns the file with the value on a line in quotes, so that other faults can be found, and whether the line has such a
// value.
func quoteLine(data []byte, line int) ([]byte, bool) {
	lines := strings.Split(string(data), "\n")
	if line < 1 || line > len(lines) || utilyaml.IsJSONBuffer(data) || len(lines) > mostProbes {
		return nil, false
	}
	found := keyAndValue.FindStringSubmatch(strings.TrimRight(lines[line-1], "\r"))
	if found == nil {
		return nil, false
	}
	lines[line-1] = found[1] + quotedJSON(found[2])
	return []byte(strings.Join(lines, "\n")), true
}
