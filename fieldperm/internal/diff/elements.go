package diff

import (
	"slices"

	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smdvalue "sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
)

// IsDefault reports whether a key has the default value that the schema declares for it.
func (d *Differ) IsDefault(list *schema.List, key *smdvalue.Field) bool {
	if list == nil {
		return false
	}
	keys := list.Keys()
	i := slices.IndexFunc(keys, func(k schema.Key) bool { return k.Name == key.Name })
	if i < 0 || keys[i].Default == nil {
		return false
	}
	fallback, _ := d.keyValue(&keys[i], rawjson.Value{})
	return d.keys.Equal(fallback, contents(&smdpath.PathElement{Value: &key.Value}))
}

// IsKey reports whether a path leads to a key of the item before it.
func IsKey(p smdpath.Path) bool {
	n := len(p) - 1
	return n > 0 && p[n].FieldName != nil && p[n-1].Key != nil &&
		slices.ContainsFunc(*p[n-1].Key, func(key smdvalue.Field) bool { return key.Name == *p[n].FieldName })
}

// Named reports whether the schema names a member as a field. The members of a map are not fields.
func Named(above *schema.Node, member *string) bool {
	if member == nil || above.Map() == nil {
		return false
	}
	_, field := above.Map().Lookup([]byte(*member))
	return field
}
