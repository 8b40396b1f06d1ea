package load

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

const (
	keyPrefix     = "x-kubernetes-permission-"
	keyVerb       = keyPrefix + "verb"
	keySource     = keyPrefix + "parameter-source"
	keyBy         = keyPrefix + "parameterized-by"
	keyTreatment  = keyPrefix + "parameter-treatment"
	keyExpression = keyPrefix + "parameter-expression"
	keyExcluded   = keyPrefix + "excluded"
	keyWhen       = keyPrefix + "excluded-when"
	keyInclude    = keyPrefix + "include"
)

// isPermissionKey reports whether a key has the prefix of permission keys, or the prefix without its dash, which no other key has.
func isPermissionKey(key string) bool {
	return strings.HasPrefix(key, strings.TrimSuffix(keyPrefix, "-"))
}

// finder collects the permission keys of one schema, as entries with paths relative to it.
type finder struct {
	source string
	// components are the named schemas that a $ref may point to.
	components map[string]any
	// known are the keywords that a schema may have; nil means any.
	known   map[string]bool
	entries []compile.Entry
	errs    []error
}

func (f *finder) fault(pointer, format string, args ...any) {
	f.errs = append(f.errs, fault(f.source, pointer, format, args...))
}

// walk visits a schema and everything below it. It does not follow references: the keys of a referred type are found when that type is
// walked.
func (f *finder) walk(node map[string]any, path, pointer string) {
	own, found := f.keys(node, pointer)
	if target, ok := f.target(node); ok {
		below := &finder{source: f.source}
		if keys, has := below.keys(target, ""); has {
			own, found = override(keys, own), true
		}
	}
	if found {
		own.Path = path
		f.entries = append(f.entries, compile.Entry{FieldPermission: own, Pointer: pointer})
	}
	for _, keyword := range slices.Sorted(maps.Keys(node)) {
		switch value := node[keyword].(type) {
		case map[string]any:
			f.below(keyword, value, path, fieldpath.Pointer(pointer, keyword))
		case []any:
			f.alternatives(keyword, value, fieldpath.Pointer(pointer, keyword))
		}
		if f.known != nil && !f.known[keyword] && !isPermissionKey(keyword) {
			f.fault(fieldpath.Pointer(pointer, keyword), "key %q is unknown in a schema: correct it or leave it out", keyword)
		}
	}
}

func (f *finder) below(keyword string, value map[string]any, path, at string) {
	switch keyword {
	case "properties":
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if property, ok := value[name].(map[string]any); ok {
				f.walk(property, fieldpath.Extend(path, name), fieldpath.Pointer(at, name))
			}
		}
	case "items", "additionalProperties":
		f.walk(value, path+"[*]", at)
	case "not":
		f.refuse(value, at)
	}
}

func (f *finder) alternatives(keyword string, value []any, at string) {
	switch keyword {
	case "allOf", "anyOf", "oneOf":
		for i, alternative := range value {
			f.refuse(alternative, fieldpath.Pointer(at, fmt.Sprint(i)))
		}
	}
}

// refuse reports permission keys at places where they cannot apply to a field. It ignores values that are not schemas (defaults,
// examples).
func (f *finder) refuse(value any, pointer string) {
	node, ok := value.(map[string]any)
	if !ok {
		return
	}
	inner := &finder{source: f.source, known: f.known}
	inner.walk(node, "", pointer)
	for _, e := range inner.entries {
		f.fault(e.Pointer, "permission keys do not count below allOf, anyOf, oneOf and not: put them on the property itself")
	}
	f.errs = append(f.errs, inner.errs...)
}

// keys reads the permission keys of one schema.
func (f *finder) keys(node map[string]any, pointer string) (v1alpha1.FieldPermission, bool) {
	var written []string
	for key := range node {
		if isPermissionKey(key) {
			written = append(written, key)
		}
	}
	if len(written) == 0 {
		return v1alpha1.FieldPermission{}, false
	}
	slices.Sort(written)
	var p v1alpha1.FieldPermission
	for _, key := range written {
		into := map[string]*string{
			keyVerb: &p.Verb, keySource: &p.ParameterSource, keyBy: &p.ParameterizedBy,
			keyTreatment: &p.ParameterTreatment, keyExpression: &p.ParameterExpression, keyWhen: &p.ExcludedWhen, keyInclude: &p.Include,
		}[key]
		at := fieldpath.Pointer(pointer, key)
		text, isText := node[key].(string)
		switch {
		case key == keyExcluded:
			if p.Excluded = node[key] == true || text == "true"; !p.Excluded {
				f.fault(at, "key %q is %v: write true, or leave it out", key, node[key])
			}
		case into == nil:
			f.fault(at, "key %q is unknown: use one of %s", key, strings.Join([]string{keyVerb, keySource, keyBy, keyTreatment, keyExpression, keyExcluded, keyWhen, keyInclude}, ", "))
		case !isText:
			f.fault(at, "key %q is %v: write a string", key, node[key])
		case text == "":
			f.fault(at, "key %q is empty: give it a value, or leave it out", key)
		default:
			*into = text
		}
	}
	return p, true
}

// target returns the schema that a node refers to, by $ref or by an allOf of one $ref.
func (f *finder) target(node map[string]any) (map[string]any, bool) {
	ref, _ := node["$ref"].(string)
	if list, _ := node["allOf"].([]any); ref == "" && len(list) == 1 {
		if only, ok := list[0].(map[string]any); ok {
			ref, _ = only["$ref"].(string)
		}
	}
	name, ok := strings.CutPrefix(ref, schemaComponentRef)
	if !ok {
		return nil, false
	}
	target, ok := f.components[name].(map[string]any)
	return target, ok
}

// override combines the keys of a field with those of its type, key by key. If two keys exclude each other, the field's key counts.
func override(inner, outer v1alpha1.FieldPermission) v1alpha1.FieldPermission {
	for _, keys := range [][2]*string{
		{&inner.Verb, &outer.Verb}, {&inner.ParameterSource, &outer.ParameterSource}, {&inner.ParameterizedBy, &outer.ParameterizedBy}, {&inner.Include, &outer.Include},
	} {
		if *keys[1] != "" {
			*keys[0] = *keys[1]
		}
	}
	if outer.ParameterTreatment != "" || outer.ParameterExpression != "" {
		inner.ParameterTreatment, inner.ParameterExpression = outer.ParameterTreatment, outer.ParameterExpression
	}
	if outer.Excluded || outer.ExcludedWhen != "" {
		inner.Excluded, inner.ExcludedWhen = outer.Excluded, outer.ExcludedWhen
	}
	return inner
}
