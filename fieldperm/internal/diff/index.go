package diff

import (
	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smdvalue "sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
)

// keyItem returns an item that has only the keys of an element. It stands for an item that is in neither object.
func (x *index) keyItem(e *smdpath.PathElement) rawjson.Value {
	item, known := x.keys[e.Key]
	if !known {
		if x.keys == nil {
			x.keys = map[*smdvalue.FieldList]rawjson.Value{}
		}
		item = contents(e)
		x.keys[e.Key] = item
	}
	return item
}

// contents returns the keys or the value of an element, as its text has them. Keys that JSON cannot express become null, which equals no key. The
// document is not released, because paths refer to it.
func contents(e *smdpath.PathElement) rawjson.Value {
	text, err := smdpath.SerializePathElement(*e)
	if err != nil {
		text = "v:null"
	}
	doc, err := rawjson.Scan([]byte(text[len("v:"):]))
	if err != nil {
		return rawjson.Value{}
	}
	return doc.Root()
}

// Find returns the first item of a keyed list with the same keys as like; absent if there is none.
func (d *Differ) Find(list *schema.List, in, like rawjson.Value) rawjson.Value {
	if !in.IsList() {
		return rawjson.Value{}
	}
	want, ok := d.identify(list.Keys(), like)
	if !ok {
		return rawjson.Value{}
	}
	index := d.index.keyed[in]
	if index == nil {
		index = map[uint64][]rawjson.Value{}
		for i := in.Items(); i.Next(); {
			if id, ok := d.identify(list.Keys(), i.Value()); ok {
				index[id.sum()] = append(index[id.sum()], i.Value())
			}
		}
		if d.index.keyed == nil {
			d.index.keyed = map[rawjson.Value]map[uint64][]rawjson.Value{}
		}
		d.index.keyed[in] = index
	}
	for _, item := range index[want.sum()] {
		if id, _ := d.identify(list.Keys(), item); d.sameIdentity(&id, &want) {
			return item
		}
	}
	return rawjson.Value{}
}

// index caches the contents of lists and objects that paths of managedFields lead through, because owners name many items and members.
type index struct {
	keyed map[rawjson.Value]map[uint64][]rawjson.Value
	parts map[rawjson.Value]*rawjson.Index
	keys  map[*smdvalue.FieldList]rawjson.Value
	// equal caches whether large values are equal.
	equal map[[2]rawjson.Value]bool
}

// fewMembers is the number of members up to which a search is as fast as the cache.
const fewMembers = 8

// member returns the member of an object, like Get, from the cache if the object has many.
func (x *index) member(v rawjson.Value, name string) rawjson.Value {
	n := 0
	for m := v.Members(); m.Next(); {
		if n++; n > fewMembers {
			found, _ := x.of(v).Find(name)
			return found
		}
	}
	return v.Get(name)
}

// item returns the item at a position, absent if there is none.
func (x *index) item(v rawjson.Value, i int) rawjson.Value { return x.of(v).Item(i) }

func (x *index) of(v rawjson.Value) *rawjson.Index {
	parts, known := x.parts[v]
	if !known {
		if x.parts == nil {
			x.parts = map[rawjson.Value]*rawjson.Index{}
		}
		parts = rawjson.NewIndex(v)
		x.parts[v] = parts
	}
	return parts
}
