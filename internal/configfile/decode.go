package configfile

import (
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"

	"github.com/fieldperm/fieldperm/internal/spelling"
)

// decode reads the document as a configuration of a kind, whose external type is t. If there are faults, the result is without the
// parts that do not fit their type, and serves to find more. take takes settings out of the tree that k8s.io/apiserver does not know,
// and reports whether there are any. The result is nil if nothing can be decoded.
func (d *document) decode(kind, flag string, t reflect.Type, take func() bool) runtime.Object {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	if d.tree == nil {
		return nil
	}
	gvk := runtimeschema.FromAPIVersionAndKind(d.text("apiVersion"), kind)
	if gvk.Version == runtime.APIVersionInternal || !scheme.Recognizes(gvk) {
		d.report("apiVersion", quoted(d.text("apiVersion"))+" is no version of "+kind, "write apiVersion: "+apiserver.GroupName+"/v1")
		d.tree["apiVersion"] = apiserver.GroupName + "/v1"
	}
	if got := d.text("kind"); got != kind {
		d.report("kind", quoted(got)+" is not what "+flag+" takes", "write kind: "+kind+", or give this file to the flag of its kind")
		return nil
	}
	d.fit(t, func(path, cure string) { d.report(path, "is not a field of "+kind, cure) })
	raw := d.data
	if took := take(); took || len(d.problems) > 0 {
		raw, _ = json.Marshal(d.tree)
	}
	object, err := runtime.Decode(serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder(), raw)
	if err == nil {
		return object
	}
	if len(d.problems) == 0 {
		d.report("", "cannot be decoded: "+err.Error(), "see the reference of its kind for what is valid")
	}
	return nil
}

// fit reports the fields that a type does not have, and the values that do not fit it, and takes them out of the tree. A decoder stops
// at the first, so it is asked again.
func (d *document) fit(t reflect.Type, unknown func(path, cure string)) {
	for range most {
		raw, err := json.Marshal(d.tree, json.Deterministic(true))
		if err == nil {
			err = json.Unmarshal(raw, reflect.New(t).Interface(), json.RejectUnknownMembers(true), jsonv1.ParseBytesWithLooseRFC4648(true))
		}
		fault, ok := errors.AsType[*json.SemanticError](err)
		if !ok || fault.JSONPointer == "" {
			return
		}
		path := d.cut(fault.JSONPointer)
		if errors.Is(fault.Err, json.ErrUnknownName) {
			names := namesOf(fault.GoType)
			cure := "remove it: the fields here are " + strings.Join(names, ", ")
			if meant := spelling.Nearest(fault.JSONPointer.LastToken(), names); meant != "" {
				cure = "write " + meant
			}
			unknown(path, cure)
			continue
		}
		node, _, _ := find(d.root, 0, path)
		value := map[yaml.Kind]string{yaml.ScalarNode: quoted(node.Value), yaml.SequenceNode: "a list", yaml.MappingNode: "a mapping"}[node.Kind]
		if d.hides(path) {
			value = "the value"
		}
		what, cure := wanted(fault.GoType)
		d.report(path, value+" is not "+what, cure)
	}
}

// wanted returns what a type takes, and the cure for another value.
func wanted(t reflect.Type) (what, cure string) {
	switch {
	case t == reflect.TypeFor[metav1.Duration]():
		return "a duration", "write a number with its unit (ms, s, m or h), for example 3s"
	case t == reflect.TypeFor[[]byte]():
		return "base64", "write the text that base64 makes of the file"
	case t.Kind() == reflect.Slice:
		return "a list", "put - before each item"
	case t.Kind() == reflect.Bool:
		return "true or false", "write true or false, without quotes"
	case t.Kind() == reflect.String:
		return "a text", "put it in quotes"
	}
	return "a mapping", "indent its fields below it"
}

// namesOf returns the fields of a type by their names in a file.
func namesOf(t reflect.Type) (out []string) {
	for _, one := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(one.Tag.Get("json"), ","); name != "" && name != "-" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// cut takes a value out of the tree and returns its path. The other items of a list keep their indexes.
func (d *document) cut(pointer jsontext.Pointer) (path string) {
	var value any = d.tree
	steps := slices.Collect(pointer.Tokens())
	for n, step := range steps {
		last := n == len(steps)-1
		switch v := value.(type) {
		case map[string]any:
			path, value = child(path, step), v[step]
			if last {
				delete(v, step)
			}
		case []any:
			i, _ := strconv.Atoi(step)
			path, value = item(path, i), v[i]
			if last {
				v[i] = nil
			}
		}
	}
	return path
}

var index = regexp.MustCompile(`\[\d+\]`)

// judge reports faults of validation with their cures.
func (d *document) judge(errs field.ErrorList) {
	cures := cures()
	for _, err := range errs {
		node, _, found := find(d.root, 0, err.Field)
		if found && node.Kind == yaml.ScalarNode && err.BadValue != "<omitted>" {
			err.BadValue = shortened(node.Value, longestValue) // with the spelling of the file
		}
		if err.Type == field.ErrorTypeRequired && found && strings.TrimSpace(node.Value) != "" {
			err.Detail = quoted(node.Value) + " counts as missing"
		}
		// CEL reports on further lines what follows from the first.
		err.Detail, _, _ = strings.Cut(err.Detail, "\n")
		cure := cures[index.ReplaceAllString(err.Field, "[]")]
		if cure == "" {
			cure = "see the reference of its kind for what is valid"
		}
		d.report(err.Field, err.ErrorBody(), cure)
	}
}
