package configfile

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	index = regexp.MustCompile(`\[\d+\]`)
	// noise matches the parts of a validation message that are too detailed for a user.
	noise = regexp.MustCompile(`, regex used for validation is '.*'|authorizer name is invalid: `)
)

// judge reports the faults that k8s.io/apiserver's validation found. place converts its paths to the paths in the file.
func (r *reading) judge(errs field.ErrorList, place func(string) string, cures map[string]cure) {
	for _, err := range errs {
		path := place(err.Field)
		if r.covered(path) {
			continue
		}
		message, advice := r.said(err, path)
		if text := cures[index.ReplaceAllString(path, "[]")].of(err); text != "" && advice == "" {
			advice = text
		}
		if advice == "" {
			advice = "see the reference of its kind for what is valid"
		}
		r.report(path, message, advice)
		if err.Type == field.ErrorTypeTooMany {
			// The faults of the items are reported separately.
			delete(r.faulty, path)
		}
	}
}

// cure is the advice for a fault that k8s.io/apiserver's validation found.
type cure struct {
	// missing is for an absent value, other for every other fault. If other is "", missing is used for both.
	missing, other string
	// twice is for a duplicate value.
	twice string
}

func (c cure) of(err *field.Error) string {
	if c.twice != "" && err.Type == field.ErrorTypeDuplicate {
		return c.twice
	}
	if c.other != "" && err.Type != field.ErrorTypeRequired {
		return c.other
	}
	return c.missing
}

// said returns the message for a fault of validation, and the advice if the fault itself contains it.
func (r *reading) said(err *field.Error, path string) (message, advice string) {
	value := text(err.BadValue)
	switch err.Type {
	default:
	case field.ErrorTypeRequired:
		if given, ok := r.value(path).(string); ok && strings.TrimSpace(given) != "" {
			return quoted(given) + " counts as missing", ""
		}
		if detail := strings.TrimSpace(err.Detail); detail != "" && !strings.Contains(detail, "is required") {
			return "is missing: " + detail, ""
		}
		return "is missing", ""
	case field.ErrorTypeDuplicate:
		if line := r.first(path); line > 0 {
			return fmt.Sprintf("%s is there twice, first on line %d", quoted(value), line), ""
		}
		return quoted(value) + " is there twice", ""
	case field.ErrorTypeTooMany:
		return err.ErrorBody(), ""
	case field.ErrorTypeNotSupported:
		return quoted(value) + " is not supported", ""
	}
	if found, ok := strings.CutPrefix(err.Detail, "error loading file: "); ok {
		return found, ""
	}
	isCode := strings.HasSuffix(strings.ToLower(path), "expression")
	if isCode && (strings.Contains(err.Detail, "compilation failed") || strings.Contains(err.Detail, "must evaluate to")) {
		return r.language.explain(value, err.Detail)
	}
	if strings.HasPrefix(err.Detail, "can only be set when") {
		return quoted(value) + " " + err.Detail, "leave it out, or write that type"
	}
	err.Detail = noise.ReplaceAllString(err.Detail, "")
	if value == "" || value == "<omitted>" || value == "non-null" {
		return err.Detail, ""
	}
	return quoted(value) + " is invalid: " + err.Detail, ""
}

// text returns the value that a fault quotes, with the spelling of the file.
func text(value any) string {
	if value == nil {
		return ""
	}
	v := reflect.ValueOf(value)
	switch v.Kind() {
	default:
	case reflect.String:
		return v.String()
	case reflect.Struct:
		// For a fault of a connection's type, validation quotes the whole connection.
		if kind := v.FieldByName("Type"); kind.IsValid() && kind.Kind() == reflect.String {
			return kind.String()
		}
		return ""
	case reflect.Slice, reflect.Map, reflect.Pointer:
		return ""
	}
	return fmt.Sprint(value)
}

// first returns the line of the first item in a list with the same value as the item at path, 0 if there is none.
func (r *reading) first(path string) int {
	at := index.FindAllStringIndex(path, -1)
	if len(at) == 0 {
		return 0
	}
	open := at[len(at)-1]
	n, err := strconv.Atoi(path[open[0]+1 : open[1]-1])
	if err != nil {
		return 0
	}
	want := r.value(path)
	for i := range n {
		before := path[:open[0]] + "[" + strconv.Itoa(i) + "]" + path[open[1]:]
		if reflect.DeepEqual(r.value(before), want) {
			return r.places.line(before)
		}
	}
	return 0
}

// value returns the value at a path, nil if there is none.
func (r *reading) value(path string) any {
	current := r.healed
	for _, step := range strings.FieldsFunc(path, func(c rune) bool { return c == '.' || c == '[' || c == ']' }) {
		switch v := current.(type) {
		case map[string]any:
			current = v[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			current = v[i]
		default:
			return nil
		}
	}
	return current
}
