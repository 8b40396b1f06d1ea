package load

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/fieldperm/fieldperm/test/previous/internal/manifest"
	"github.com/fieldperm/fieldperm/test/previous/schema"
	"github.com/fieldperm/fieldperm/test/previous/schema/fieldpath"
)

// fault returns the error for a place in a document.
func fault(source, pointer, format string, args ...any) *schema.Error {
	return &schema.Error{Source: source, Pointer: pointer, Message: fmt.Sprintf(format, args...)}
}

// separate returns the errors that errors.Join joined.
func separate(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

var indexStep = regexp.MustCompile(`\[(\d+)\]`)

// fieldPointer converts a path of sigs.k8s.io/json, such as spec.permissions[0].path, into a JSON pointer. A key with dots becomes
// several steps.
func fieldPointer(path string) string {
	return fieldpath.Pointer("", strings.Split(indexStep.ReplaceAllString(path, ".$1"), ".")...)
}

var yamlLine = regexp.MustCompile(`line (\d+): `)

// syntaxFaults splits the error of the YAML library into one error for each line that it names. The place of each is its line number,
// because there is no decoded document to point into.
func syntaxFaults(source string, err error) []error {
	if errors.Is(err, manifest.ErrEncoding) {
		return []error{fault(source, "", "%v", err)}
	}
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	var errs []error
	for _, line := range strings.Split(strings.TrimPrefix(text, "unmarshal errors:\n"), "\n") {
		place := ""
		if m := yamlLine.FindStringSubmatch(line); m != nil {
			place, line = m[1], strings.Replace(line, m[0], "", 1)
		}
		line = strings.TrimSpace(line)
		if strings.HasSuffix(line, "already set in map") {
			line += ": keep one of them"
		} else {
			line = "no YAML or JSON: " + line + ": correct the syntax"
		}
		errs = append(errs, fault(source, place, "%s", line))
	}
	return errs
}
