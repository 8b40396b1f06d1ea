package walk

import (
	"bytes"

	"github.com/fieldperm/fieldperm/test/previous/internal/rawjson"
	"github.com/fieldperm/fieldperm/test/previous/schema"
)

// changer is a changed member, by its name. several means that more than one has a spelling of the name.
type changer struct {
	name    []byte
	several bool
}

// spellings charges the barriers in members whose names are other spellings of the name of a changed member, as if these members vanished and appeared.
// A program that ignores the case of names reads both into one field: the one that it reads last may hide what the other has, or no longer hide it.
// begin is the index of the first changed member on the stack.
func (d *Differ) spellings(s Scope, begin int, old, new rawjson.Value) {
	if len(d.changed) == begin || !old.IsObject() || !new.IsObject() || !s.Node.Map().Folds() || !d.MayBarWithin(s) {
		return
	}
	changed := make(map[string]changer, len(d.changed)-begin)
	for i := begin; i < len(d.changed); i++ {
		c := &d.changed[i]
		d.Same.Recall(c.old, c.new, c.known)
		if d.Same.Equal(c.old, c.new) {
			continue
		}
		name := schema.FoldName(string(c.name))
		_, has := changed[name]
		changed[name] = changer{c.name, has}
	}
	var none rawjson.Value
	mayHide := func(name []byte) bool {
		by, has := changed[schema.FoldName(string(name))]
		return has && (by.several || !bytes.Equal(by.name, name))
	}
	for m := old.Members(); m.Next(); {
		if name := m.Name().Bytes(); mayHide(name) {
			d.Key(s, name, m.Value(), none, guardedBelow(s))
		}
	}
	for m := new.Members(); m.Next(); {
		if name := m.Name().Bytes(); mayHide(name) {
			d.Key(s, name, none, m.Value(), guardedBelow(s))
		}
	}
}
