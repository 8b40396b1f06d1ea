package lint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/fieldperm/fieldperm/internal/finding"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// Annotation suppresses rules for a whole object, which may be JSON: one "RULE reason" in each line.
const Annotation = "fieldperm.dev/lint-disable"

// suppression leaves out the findings of one rule.
type suppression struct {
	*object
	rule string
	// lines are the lines that the suppression is about, empty for the whole object.
	line int
	// pointer or place is where it stands.
	pointer      string
	at           int
	column       int
	used, broken bool
}

// comment matches a suppression in a comment.
var comment = regexp.MustCompile(`(?:^|\s)#\s*fieldperm:lint\s+(.*)$`)

// suppress leaves out the findings that comments and annotations are about, and reports suppressions that are wrong or have no effect. It returns
// the number of findings that are left out.
func (l *linter) suppress() int {
	var all []*suppression
	for _, o := range l.objects {
		all = append(all, l.annotated(o)...)
	}
	for i, o := range l.objects {
		if i == 0 || l.objects[i-1].file != o.file {
			all = append(all, l.commented(o.file)...)
		}
	}
	kept := l.found[:0:0]
	for _, f := range l.found {
		by := slices.IndexFunc(all, func(s *suppression) bool { return s.covers(&f) })
		if by < 0 {
			kept = append(kept, f)
			continue
		}
		all[by].used = true
	}
	suppressed := len(l.found) - len(kept)
	l.found = kept
	for _, s := range all {
		if !s.used && !s.broken && l.on[s.rule] {
			s.report(l, suppressionUnused, finding.Note, fmt.Sprintf("rule %q has no finding here", s.rule), "remove the suppression")
		}
	}
	return suppressed
}

// covers reports whether the suppression is about a finding.
func (s *suppression) covers(f *Finding) bool {
	if s.broken || s.rule != f.Rule || s.file.Name != f.File || s.ref != f.Object {
		return false
	}
	return s.line == 0 || slices.Contains(f.within, s.line)
}

// annotated reads the annotation of an object.
func (l *linter) annotated(o *object) []*suppression {
	var head struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	text := ""
	if err := json.Unmarshal(o.raw, &head); err == nil {
		text = head.Metadata.Annotations[Annotation]
	}
	var out []*suppression
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			s := &suppression{object: o, pointer: fieldpath.Pointer("/metadata/annotations", Annotation)}
			s.read(l, line)
			out = append(out, s)
		}
	}
	return out
}

// commented reads the comments of a file. A comment behind something is about its line, one on a line of its own about the next line with
// something, and one above the first line of an object about the whole object.
func (l *linter) commented(file *File) []*suppression {
	if strings.HasPrefix(strings.TrimSpace(string(file.Raw)), "{") {
		return nil
	}
	var out []*suppression
	lines := strings.Split(string(file.Raw), "\n")
	var known []string
	for i, text := range lines {
		m := comment.FindStringSubmatchIndex(text)
		if m == nil {
			continue
		}
		if known == nil {
			known = comments(file.Raw)
		}
		written := strings.TrimSpace(text[m[0]:])
		if !slices.ContainsFunc(known, func(line string) bool { return strings.HasSuffix(line, written) }) {
			continue // It is a part of a text, such as a description that others wrote.
		}
		about := i
		if strings.TrimSpace(text[:m[0]]) == "" {
			for about++; about < len(lines); about++ {
				if next := strings.TrimSpace(lines[about]); next != "" && !strings.HasPrefix(next, "#") && next != "---" {
					break
				}
			}
		}
		s := &suppression{object: l.objectAt(file, about+1), line: about + 1, at: i + 1, column: m[0] + 1}
		if s.object == nil {
			continue
		}
		if s.root != nil && s.line == s.lines+s.root.Line && about != i {
			s.line = 0
		}
		rest, isDisable := strings.CutPrefix(strings.TrimSpace(text[m[2]:m[3]]), "disable=")
		if !isDisable {
			rest = ""
		}
		s.read(l, rest)
		out = append(out, s)
	}
	return out
}

// comments returns the lines of all comments of a file, as a reader of YAML finds them.
func comments(raw []byte) []string {
	out := []string{}
	var visit func(*yamlv3.Node)
	visit = func(n *yamlv3.Node) {
		for line := range strings.SplitSeq(n.HeadComment+"\n"+n.LineComment+"\n"+n.FootComment, "\n") {
			if line = strings.TrimSpace(line); line != "" {
				out = append(out, line)
			}
		}
		for _, below := range n.Content {
			visit(below)
		}
	}
	decoder := yamlv3.NewDecoder(bytes.NewReader(raw))
	for {
		var document yamlv3.Node
		if err := decoder.Decode(&document); err != nil {
			return out // Of a file with an error, or at its end.
		}
		visit(&document)
	}
}

// objectAt returns the object that has a line of a file: the last one that begins at or before it.
func (l *linter) objectAt(file *File, line int) *object {
	var out *object
	for _, o := range l.objects {
		if o.file == file && (o.root == nil || o.lines+o.root.Line <= line) {
			out = o
		}
	}
	return out
}

// read takes "RULE reason".
func (s *suppression) read(l *linter, text string) {
	rule, reason, _ := strings.Cut(text, " ")
	s.rule = rule
	const form = "write disable=RULE and a reason"
	var message, cure string
	switch {
	case rule == "":
		message, cure = "the suppression names no rule", form
	case !slices.Contains(ruleIDs(), rule):
		message, cure, _ = strings.Cut(unknownRule("the suppression", rule).Error(), " exist: ")
		message += " exist"
	case fixed[rule], rule == suppressionUnused:
		message, cure = fmt.Sprintf("rule %q cannot be suppressed", rule), "correct what it reports"
	case strings.TrimSpace(reason) == "":
		message, cure = fmt.Sprintf("the suppression of rule %q has no reason", rule), form
	default:
		return
	}
	s.broken = true
	s.report(l, suppressionInvalid, finding.Error, message, cure)
}

// report reports a finding about the suppression itself.
func (s *suppression) report(l *linter, rule string, level finding.Level, message, cure string) {
	before := len(l.found)
	l.report(s.object, s.pointer, "", finding.Finding{Rule: rule, Level: level, Message: message, Cure: cure, About: s.rule})
	if len(l.found) > before && s.at > 0 {
		l.found[before].Line, l.found[before].Column = s.at, s.column
	}
}
