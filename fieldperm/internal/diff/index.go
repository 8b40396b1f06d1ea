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

// find returns the items of a keyed list with the same keys as like.
func (d *Differ) find(list *schema.List, in, like rawjson.Value) (found []rawjson.Value) {
	if !in.IsList() {
		return nil
	}
	want, ok := d.identify(list.Keys(), like)
	if !ok {
		return nil
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
			found = append(found, item)
		}
	}
	return found
}

// index caches the contents of lists and objects that paths of managedFields lead through, because owners name many items and members.
type index struct {
	keyed   map[rawjson.Value]map[uint64][]rawjson.Value
	members map[rawjson.Value]map[string]rawjson.Value
	items   map[rawjson.Value][]rawjson.Value
	keys    map[*smdvalue.FieldList]rawjson.Value
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
			return x.membersOf(v)[name]
		}
	}
	return v.Get(name)
}

func (x *index) membersOf(v rawjson.Value) map[string]rawjson.Value {
	members, known := x.members[v]
	if !known {
		if x.members == nil {
			x.members = map[rawjson.Value]map[string]rawjson.Value{}
		}
		members = map[string]rawjson.Value{}
		for m := v.Members(); m.Next(); {
			members[m.Name().String()] = m.Value()
		}
		x.members[v] = members
	}
	return members
}

// item returns the item at a position, absent if there is none.
func (x *index) item(v rawjson.Value, i int) rawjson.Value {
	items, known := x.items[v]
	if !known {
		if x.items == nil {
			x.items = map[rawjson.Value][]rawjson.Value{}
		}
		for i := v.Items(); i.Next(); {
			items = append(items, i.Value())
		}
		x.items[v] = items
	}
	if i < 0 || i >= len(items) {
		return rawjson.Value{}
	}
	return items[i]
}
