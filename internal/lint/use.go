package lint

import (
	"strings"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// use is an entry of an object: what it says of one path.
type use struct {
	*object
	compile.Entry
	form schema.Form
	// group and kind are those of the objects with the path.
	group, kind string
	// versions are the versions that the entry is about; empty means every version. An entry of a definition has one.
	versions []string
	path     fieldpath.Pattern
}

// uses returns the entries of the object whose path can be read. The replicas of the scale subresource are not an entry of the author.
func (o *object) uses() []*use {
	if o.entries != nil {
		return o.entries
	}
	out := []*use{}
	for i := range o.docs.Permissions {
		d := &o.docs.Permissions[i]
		if d.Form == schema.FormScale {
			continue
		}
		for _, e := range d.Entries {
			if path, err := fieldpath.ParsePattern(e.Path); err == nil {
				out = append(out, &use{o, e, d.Form, d.Group, d.Kind, d.Versions, path})
			}
		}
	}
	o.entries = out
	return out
}

// own reports whether the author of the kind wrote the entry.
func (u *use) own() bool { return u.form != schema.FormPermissionSchema }

// keys of an entry, by the form.
var (
	schemaKeys = map[string]string{
		"verb": "x-kubernetes-permission-verb", "parameterSource": "x-kubernetes-permission-parameter-source", "parameterizedBy": "x-kubernetes-permission-parameterized-by",
		"parameterTreatment": "x-kubernetes-permission-parameter-treatment", "parameterExpression": "x-kubernetes-permission-parameter-expression",
		"excluded": "x-kubernetes-permission-excluded", "excludedWhen": "x-kubernetes-permission-excluded-when",
	}
)

// pointer returns the pointer of one key of the entry.
func (u *use) pointer(key string) string {
	if u.form == schema.FormSchemaKeys {
		key = schemaKeys[key]
	}
	return u.Pointer + "/" + key
}

// where returns the version, if the entry is about one, and the path.
func (u *use) where() string { return where(u.versions, u.path) }

func where(versions []string, path fieldpath.Pattern) string {
	text := path.String()
	if text == "" {
		text = "."
	}
	if len(versions) == 0 {
		return text
	}
	return strings.Join(versions, ",") + " " + text
}

// isAbout reports whether the entry is about a version.
func (u *use) isAbout(version string) bool {
	for _, v := range u.versions {
		if v == version {
			return true
		}
	}
	return len(u.versions) == 0
}

// effective returns the entries of a version of a definition, one for each path: the annotation counts over the keys of the schema.
func effective(uses []*use, version string) map[string]*use {
	out := map[string]*use{}
	for _, u := range uses {
		if u.isAbout(version) {
			if known := out[u.path.String()]; known == nil || u.form == schema.FormAnnotation {
				out[u.path.String()] = u
			}
		}
	}
	return out
}
