package lint

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
)

// edit replaces a text of a file. Everything else of the file stays as it is, byte by byte.
type edit struct {
	// begin and end are byte offsets in the file.
	begin, end int
	text       string
	// what says what the edit does.
	what string
}

// replace returns the edit that replaces a scalar. There is none if the scalar is at other places too (an alias), or is written in a form in
// which another text cannot take its place.
func (o *object) replace(pointer, was, becomes string) []edit {
	s, whole := nodeAt(o.root, pointer)
	if !whole || s.aliased || s.value.Kind != yamlv3.ScalarNode || s.value.Value != was || s.value.Anchor != "" {
		return nil
	}
	begin, ok := o.offset(s.value)
	if !ok {
		return nil
	}
	rest := string(o.file.Raw[begin:])
	for _, quote := range []string{"", `"`, "'"} {
		if written := quote + was + quote; strings.HasPrefix(rest, written) && (quote != "" || s.value.Style == 0) {
			return []edit{{begin, begin + len(written), quote + becomes + quote, fmt.Sprintf("write %q in place of %q", becomes, was)}}
		}
	}
	return nil
}

// insert returns the edit that adds the permission keys of an entry to a schema that has none.
func (o *object) insert(pointer string, u *use) []edit {
	s, whole := nodeAt(o.root, pointer)
	if !whole || s.aliased || s.value.Kind != yamlv3.MappingNode || len(s.value.Content) == 0 || s.value.Anchor != "" {
		return nil
	}
	isFlow := s.value.Style&yamlv3.FlowStyle != 0
	at := s.value
	if !isFlow {
		at = s.value.Content[0]
	}
	begin, ok := o.offset(at)
	if !ok || isFlow && o.file.Raw[begin] != '{' {
		return nil
	}
	isJSON := isFlow && strings.HasPrefix(strings.TrimSpace(string(o.file.Raw)), "{")
	var text strings.Builder
	for _, line := range keysOf(u) {
		key, value := line[0], line[1]
		if !isJSON && plainText.MatchString(line[1]) {
			value = strings.Trim(value, `"`)
		}
		switch {
		case isJSON:
			fmt.Fprintf(&text, "%q: %s, ", key, value)
		case isFlow:
			text.WriteString(key + ": " + value + ", ")
		default:
			text.WriteString(key + ": " + value + "\n" + strings.Repeat(" ", at.Column-1))
		}
	}
	if isFlow {
		begin++
	} else if strings.TrimSpace(o.line(begin)) != "" {
		// Something stands before the first key, as in "- a: b" or "? a". The indentation is that of the key all the same.
		if strings.Trim(o.line(begin), " -") != "" {
			return nil
		}
	}
	return []edit{{begin, begin, text.String(), fmt.Sprintf("give %s the verb %q of the other version", u.path, u.Verb)}}
}

// plainText matches a quoted text that needs no quotes in YAML.
var plainText = regexp.MustCompile(`^"[a-z][A-Za-z0-9./-]*"$`)

// line returns the text of the line before an offset.
func (o *object) line(offset int) string {
	before := string(o.file.Raw[:offset])
	return before[strings.LastIndexByte(before, '\n')+1:]
}

// keysOf returns the keys of an entry with their values as JSON, which is YAML too.
func keysOf(u *use) [][2]string {
	var out [][2]string
	for _, key := range []struct{ name, value string }{
		{"verb", u.Verb}, {"parameterSource", u.ParameterSource}, {"parameterizedBy", u.ParameterizedBy}, {"parameterTreatment", u.ParameterTreatment},
		{"parameterExpression", u.ParameterExpression}, {"excludedWhen", u.ExcludedWhen},
	} {
		if key.value != "" {
			out = append(out, [2]string{schemaKeys[key.name], strconv.Quote(key.value)})
		}
	}
	if u.Excluded {
		out = append(out, [2]string{schemaKeys["excluded"], "true"})
	}
	return out
}

// offset returns the byte offset of a node in the file.
func (o *object) offset(n *yamlv3.Node) (int, bool) {
	begin := 0
	for range o.lines + n.Line - 1 {
		i := strings.IndexByte(string(o.file.Raw[begin:]), '\n')
		if i < 0 {
			return 0, false
		}
		begin += i + 1
	}
	column := n.Column - 1
	for i := range string(o.file.Raw[begin:]) {
		if column == 0 {
			return begin + i, true
		}
		column--
	}
	return 0, false
}
