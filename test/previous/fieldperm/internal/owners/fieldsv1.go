package owners

import (
	"iter"
	"slices"
	"sync"

	"golang.org/x/sync/semaphore"
	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/test/previous/internal/rawjson"
)

// decoder decodes FieldsV1. The library would read them from a copy of the text. It ignores elements of kinds that it does not know, and takes
// quadratic time for elements in another order than that of API servers.
type decoder struct {
	names rawjson.Texts
	// elements are those of the levels that are being decoded, one level after the other.
	elements []pathElement
}

// pathElement is a member of FieldsV1: a path element and the part below it.
type pathElement struct {
	smdpath.PathElement
	below rawjson.Value
}

// decode adds the paths of FieldsV1 to a set. It reports false for anything that the library would write in another way, because the rest of what
// such a text says cannot be compared.
func (d *decoder) decode(set *smdpath.Set, fields rawjson.Value) bool {
	own, ok := d.level(set, fields)
	return ok && !own
}

// level is decode for one level. own reports whether the level has an entry for the place that it is in.
func (d *decoder) level(set *smdpath.Set, v rawjson.Value) (own, ok bool) {
	if !v.IsObject() {
		return false, false
	}
	begin := len(d.elements)
	defer func() { d.elements = d.elements[:begin] }()
	for m := v.Members(); m.Next(); {
		name, below := m.Name(), m.Value()
		if !below.IsObject() {
			return false, false
		}
		if name.Is(itself) {
			if own || !below.IsEmpty() {
				return false, false
			}
			own = true
			continue
		}
		text := d.names.Of(name.Bytes())
		element, err := smdpath.DeserializePathElement(text)
		if err != nil || !isUsual(text, &element) {
			return false, false
		}
		if len(d.elements) == cap(d.elements) {
			d.elements = slices.Grow(d.elements, max(len(d.elements), 8)) // Twice as many, because append allocates large lists more often.
		}
		d.elements = append(d.elements, pathElement{element, below})
	}
	level := d.elements[begin:]
	compare := func(a, b pathElement) int { return a.Compare(b.PathElement) }
	if !slices.IsSortedFunc(level, compare) {
		slices.SortFunc(level, compare)
	}
	for i := range level {
		e := &level[i]
		if i > 0 && compare(level[i-1], *e) == 0 {
			return false, false
		}
		isMember := e.below.IsEmpty()
		if !isMember {
			if isMember, ok = d.level(set.Children.Descend(e.PathElement), e.below); !ok {
				return false, false
			}
		}
		if isMember {
			set.Members.Insert(e.PathElement)
		}
	}
	return own, len(level) > 0 || !own
}

// isUsual reports whether the library writes an element with this text.
func isUsual(text string, e *smdpath.PathElement) bool {
	if e.FieldName != nil {
		return true
	}
	again, err := smdpath.SerializePathElement(*e)
	return err == nil && again == text
}

// paths returns the paths of a set, those of a level before those below it. A path is valid until the next one: the library allocates each.
func paths(set *smdpath.Set) iter.Seq[smdpath.Path] {
	return func(yield func(smdpath.Path) bool) {
		v, _ := visits.Get().(*visit)
		v.yield, v.stopped = yield, false
		v.level(set)
		v.yield = nil
		if cap(v.path) > mostKept {
			return
		}
		clear(v.path[:cap(v.path)])
		visits.Put(v)
	}
}

// mostKept is the capacity of the largest path that is kept for other iterations, each of which clears it.
const mostKept = 64

// visits pools the memory for the paths of ended iterations.
var visits = sync.Pool{New: func() any {
	v := &visit{path: make(smdpath.Path, 0, 16)}
	v.ofMember, v.ofChild = v.member, v.child
	return v
}}

// visit is the state of one iteration. The functions are kept, because each method value takes memory.
type visit struct {
	yield             func(smdpath.Path) bool
	ofMember, ofChild func(smdpath.PathElement)
	path              smdpath.Path
	set               *smdpath.Set
	stopped           bool
}

func (v *visit) level(set *smdpath.Set) {
	above := v.set
	v.set = set
	set.Members.Iterate(v.ofMember)
	set.Children.Iterate(v.ofChild)
	v.set = above
}

func (v *visit) member(e smdpath.PathElement) {
	if !v.stopped {
		v.path = append(v.path, e)
		v.stopped = !v.yield(v.path)
		v.path = v.path[:len(v.path)-1]
	}
}

func (v *visit) child(e smdpath.PathElement) {
	if below, is := v.set.Children.Get(e); is && !v.stopped {
		v.path = append(v.path, e)
		v.level(below)
		v.path = v.path[:len(v.path)-1]
	}
}

// under returns the paths of a set that begin with an element, without it. Callers must not change the result: the library makes an empty set for
// each element that the set lacks.
func under(set *smdpath.Set, e smdpath.PathElement) *smdpath.Set {
	if below, is := set.Children.Get(e); is {
		return below
	}
	return nothing
}

var nothing = smdpath.NewSet()

// mostWeight is the maximum weight, in bytes, of the paths in the changed entries of one request. It is more than a stored object can
// have. A short text may hold many paths of a thousand elements.
const mostWeight = 32 << 20

// A comparison of owners takes several times the memory that the paths weigh. A comparison that weighs more than lightWeight (bytes)
// waits for its share of mostMemory (bytes), which is for all comparisons of the process.
const lightWeight, mostMemory = 256 << 10, 16 << 20

var memory = semaphore.NewWeighted(mostMemory)

// elementWeight is the weight of each path element in bytes, without its name.
const elementWeight = 64

// weight returns the weight, in bytes, of the paths of some managers.
func (m *managedFields) weight(managers []manager) int {
	sum := 0
	for _, who := range managers {
		for _, i := range m.of[who] {
			sum += weigh(m.entries[i].raw, 0)
		}
	}
	return sum
}

// weigh returns the weight, in bytes, of the paths of FieldsV1 below a path that weighs above.
func weigh(v rawjson.Value, above int) int {
	sum := 0
	for m := v.Members(); m.Next(); {
		name := m.Name()
		if name.Is(".") {
			sum += above
			continue
		}
		own := above + elementWeight + len(name.Bytes())
		if m.Value().IsEmpty() {
			sum += own
		} else {
			sum += weigh(m.Value(), own)
		}
		if sum > mostWeight {
			break
		}
	}
	return sum
}
