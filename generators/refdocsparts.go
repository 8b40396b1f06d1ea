package generators

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/schema"
)

// minPart is how many guarded fields a part needs before a reference to it is shorter than the part.
const minPart = 6

// refer replaces every part that was already written by a reference to its first place.
func (r *reference) refer() {
	first := map[string]refPlace{}
	for _, k := range r.kinds {
		for i := range k.rows {
			if k.rows[i].hidden {
				continue
			}
			below := k.below(i)
			if len(below) < minPart {
				continue
			}
			content := partContent(k.rows[i].path, below, len(k.versions))
			at, known := first[content]
			if !known {
				first[content] = refPlace{k, k.rows[i].path}
				continue
			}
			k.rows[i].like = &at
			for j := range below {
				below[j].hidden = true
			}
			at.kind.markRepeated(at.path)
		}
	}
}

// below returns the rows strictly below a row. They are the rows that follow it.
func (k *refKind) below(i int) []refRow {
	end := i + 1
	for end < len(k.rows) && isBelow(k.rows[end].path, k.rows[i].path) {
		end++
	}
	return k.rows[i+1 : end]
}

func (k *refKind) markRepeated(path string) {
	for i := range k.rows {
		if isBelow(k.rows[i].path, path) {
			k.rows[i].repeated = true
		}
	}
}

// partContent returns a text that is equal for parts with equal content. A part that only some versions have completely is always written
// out.
func partContent(path string, rows []refRow, versions int) string {
	var b strings.Builder
	for i := range rows {
		row := &rows[i]
		b.WriteString(strings.TrimPrefix(row.path, path) + " " + row.verb + " " + row.barrier + " " + powerWords(row.powers))
		if versions > 0 && len(row.versions) < versions {
			b.WriteString(" " + strings.Join(row.versions, ","))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// refersTo returns the other kinds that rows of k refer to, without duplicates.
func (k *refKind) refersTo() []*refKind {
	var out []*refKind
	for i := range k.rows {
		if like := k.rows[i].like; like != nil && !k.rows[i].hidden && like.kind != k && !like.kind.every && !slices.Contains(out, like.kind) {
			out = append(out, like.kind)
		}
	}
	return out
}

// refPart is a part with all its places.
type refPart struct {
	first string
	also  []string
}

func (r *reference) repeatedParts() []refPart {
	var out []refPart
	index := map[refPlace]int{}
	for _, k := range r.kinds {
		for i := range k.rows {
			row := &k.rows[i]
			if row.like == nil || row.hidden {
				continue
			}
			at, known := index[*row.like]
			if !known {
				at = len(out)
				index[*row.like] = at
				out = append(out, refPart{first: placeText(row.like.kind, row.like.path)})
			}
			if row.like.kind.every {
				// Nearly every kind has it, so a list would not help.
				out[at].also = []string{"nearly every kind; [kinds.md](kinds.md) spells out the exceptions"}
				continue
			}
			out[at].also = append(out[at].also, placeText(k, row.path))
		}
	}
	return out
}

func placeText(k *refKind, path string) string {
	return k.title() + " " + CodeSpan(path)
}

// refVerb is a verb with the fields that it guards.
type refVerb struct {
	text  string
	every bool
	// powers are the powers of the verb at any of its fields.
	powers []schema.Power
	// repeated means that the verb is in a part that repeats.
	repeated bool
	paths    []string
	at       map[string][]string
	kinds    map[string]bool
}

// verbs returns every verb, sorted by name.
func (r *reference) verbs() []*refVerb {
	known := map[string]*refVerb{}
	for _, k := range r.kinds {
		for i := range k.rows {
			row := &k.rows[i]
			if row.hidden || row.verb == "" {
				continue
			}
			v := known[row.verb]
			if v == nil {
				v = &refVerb{text: row.verb, at: map[string][]string{}, kinds: map[string]bool{}}
				known[row.verb] = v
			}
			if k.every {
				v.every = true
			}
			v.powers = inOrder(append(v.powers, row.powers...))
			v.note(k, row)
		}
	}
	var out []*refVerb
	for _, v := range known {
		slices.Sort(v.paths)
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b *refVerb) int {
		return cmp.Or(cmp.Compare(strings.ToLower(a.text), strings.ToLower(b.text)), cmp.Compare(a.text, b.text))
	})
	return out
}

func (v *refVerb) note(k *refKind, row *refRow) {
	// A field that every kind has at this path needs no list of kinds.
	if _, everywhere := v.at[row.path]; everywhere && v.every && !k.every && len(v.at[row.path]) == 0 {
		return
	}
	if _, known := v.at[row.path]; !known {
		v.paths = append(v.paths, row.path)
		v.at[row.path] = nil
	}
	v.repeated = v.repeated || row.repeated
	if k.every {
		return
	}
	v.kinds[k.title()] = true
	name := k.title()
	if row.repeated {
		name += "†"
	}
	if row.barrier != "" {
		name += " (" + cellText(row.barrier) + ")"
	}
	v.at[row.path] = append(v.at[row.path], name)
}
