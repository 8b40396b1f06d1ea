package walk

import (
	"bytes"

	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
)

// several stands for the index of a changed member where more than one has a name.
const several = -1

// spellings charges the barriers in members whose names are other spellings of the name of a changed member, as if these members vanished and appeared.
// A program that ignores the case of names reads both into one field: the one that it reads last may hide what the other has, or no longer hide it.
// begin is the index of the first changed member on the stack.
func (d *Differ) spellings(s Scope, begin int, old, new rawjson.Value) {
	if len(d.changed) == begin || !old.IsObject() || !new.IsObject() || !s.Node.Map().Folds() || !d.MayBarWithin(s) {
		return
	}
	changed := make(map[string]int, len(d.changed)-begin)
	for i := begin; i < len(d.changed); i++ {
		name := schema.FoldName(string(d.changed[i].name))
		if _, has := changed[name]; has {
			changed[name] = several
		} else {
			changed[name] = i
		}
	}
	var none rawjson.Value
	for m := old.Members(); m.Next(); {
		if name := m.Name().Bytes(); d.mayHide(changed, name) {
			d.Key(s, name, m.Value(), none, guardedBelow(s))
		}
	}
	for m := new.Members(); m.Next(); {
		if name := m.Name().Bytes(); d.mayHide(changed, name) {
			d.Key(s, name, none, m.Value(), guardedBelow(s))
		}
	}
}

// mayHide reports whether a changed member may hide a member of a name. changed are the indexes of the changed ones, by folded name.
func (d *Differ) mayHide(changed map[string]int, name []byte) bool {
	i, has := changed[schema.FoldName(string(name))]
	return has && (i == several || !bytes.Equal(d.changed[i].name, name) && !d.Same.Equal(d.changed[i].old, d.changed[i].new))
}
