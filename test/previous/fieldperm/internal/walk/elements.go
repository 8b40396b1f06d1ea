package walk

import (
	"slices"

	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smdvalue "sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/fieldperm/fieldperm/test/previous/internal/rawjson"
	"github.com/fieldperm/fieldperm/test/previous/schema"
)

// Keyed reports whether keys tell the items of a list apart.
func (d *Differ) Keyed(s Scope, list rawjson.Value) bool {
	g := d.group(s.Node.List().Keys(), list, rawjson.Value{})
	return g.add(list, true) && len(g.groups) == len(g.items)
}

// Element returns the path element that managedFields use for an item.
func (d *Differ) Element(s Scope, item rawjson.Value) smdpath.PathElement {
	keys := s.Node.List().Keys()
	if len(keys) == 0 {
		v := smdvalue.NewValueInterface(rawjson.Native(item, nil))
		return smdpath.PathElement{Value: &v}
	}
	fields := make(smdvalue.FieldList, 0, len(keys))
	for i := range keys {
		if v, _ := d.keyValue(&keys[i], item); !v.IsAbsent() {
			fields = append(fields, smdvalue.Field{Name: keys[i].Name, Value: smdvalue.NewValueInterface(rawjson.Native(v, nil))})
		}
	}
	fields.Sort()
	return smdpath.PathElement{Key: &fields}
}

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
