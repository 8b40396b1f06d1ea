package rawjson

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth is the maximum nesting of objects and lists. It is jsontext's limit, so that both refuse the same texts.
const maxDepth = 10_000

// Document is a text that has been scanned. It does not change, except for the sums that Values cache in it. Only one goroutine at
// a time may use it.
type Document struct {
	data []byte
	// tape has the objects, lists, long strings and long numbers in the order of their starts.
	tape []extent
	// sums are the cached sums by index on the tape, 0 if not computed; see Value.Sum.
	sums []uint64
	// replaced: see Value.MayHoldReplacement.
	replaced bool
	// escaped is set by each escape sequence.
	escaped bool
	// levels are the names of the open objects, and suspects the objects in which a name may occur twice, by index on the tape.
	levels   []level
	suspects []uint32
	// repeats: see Value.NamesRepeat.
	repeats bool
}

// extent is the position of an element of the tape: data[start:end] with its brackets or quotes.
type extent struct {
	start, end uint32
	// next is the index of the first extent after this one and its contents. During the scan it is the index of the container around
	// it.
	next uint32
}

// long is the minimum length in bytes of strings and numbers on the tape. Finding the end of a shorter one costs no more than using
// the tape.
const long = 64

const none = math.MaxUint32

// mostKept is the largest tape that is kept for another Scan. It is enough for objects of some MiB.
const mostKept = 1 << 18

var documents = sync.Pool{New: func() any { return &Document{} }}

// Scan reads one JSON value, with nothing but white space around it. It accepts the same texts as jsontext with duplicate names
// allowed: UTF-8, complete surrogate pairs, at most 10,000 levels. Any other text is an error, in jsontext's words. The caller must not change the
// text while the Document is in use, nor after Release while it uses bytes of the text.
func Scan(data []byte) (*Document, error) {
	d, _ := documents.Get().(*Document)
	d.data, d.tape, d.replaced, d.suspects, d.repeats = data, d.tape[:0], false, d.suspects[:0], false
	if len(data) >= none {
		d.Release()
		return nil, errors.New("text of 4 GiB or more")
	}
	if !d.scan() {
		d.Release()
		return nil, explain(data)
	}
	d.repeats = slices.ContainsFunc(d.suspects, d.repeatsAt)
	return d, nil
}

// Release lets another Scan use the memory of d. The caller must not use d or its Values afterwards, but may use bytes of the text.
// Calling Release is optional.
func (d *Document) Release() {
	d.data, d.sums = nil, d.sums[:0]
	if cap(d.tape) <= mostKept {
		documents.Put(d)
	}
}

// ErrMore is the error of Scan if more text follows the value.
var ErrMore = errors.New("more text after the value")

// explain returns jsontext's error, with the position, for a text that Scan refuses.
func explain(data []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true))
	err := d.SkipValue()
	if err == nil {
		if _, err = d.ReadToken(); err == nil {
			err = ErrMore
		}
	}
	return err
}

// scan reports whether the text is one JSON value.
//
// The two objects of an AdmissionReview have nearly the same bytes. So each container has a model: the container at the same
// position in the model of its parent, or else a large one just before it. If a container has the same bytes as its model, it is as
// valid and as long, and the model's part of the tape is copied. A model has the same depth as the container that is compared with
// it. A wrong model costs only time.
func (d *Document) scan() bool {
	data, tape := d.data, d.tape
	var (
		i     int
		ok    bool
		open  uint32 = none // the innermost open container
		model uint32 = none // the model of the next extent in it
		same  run           // With nested containers, each inner comparison is a part of the outer one.
		depth int
		named bool // the innermost open container is an object
	)
	for {
		// A value or the name of a member starts here.
		i = skipSpace(data, i)
		if i >= len(data) {
			return false
		}
	value:
		c := data[i]
		if model != none && data[tape[model].start] == c {
			m := tape[model]
			end := i + int(m.end-m.start)
			if end <= len(data) && same.same(data[m.start:m.end], data[i:end], m.start, uint32(i)) && ends(data, c, end) { //nolint:gosec // Scan has checked the length.
				tape = appendCopy(tape, model, i)
				i = end
				model = following(tape, open, m.next)
				goto ended
			}
		}
		switch c {
		case '"':
			begin := i
			if i = shortString(data, i+1); i > 0 {
				break
			}
			if i, ok = d.scanString(data, -i); !ok {
				return false
			}
			if i-begin >= long {
				tape = appendLeaf(tape, begin, i)
				if model != none && data[tape[model].start] == '"' {
					model = following(tape, open, tape[model].next)
				}
			}
		case '{', '[':
			if depth++; depth > maxDepth {
				return false
			}
			if i+1 < len(data) && data[i+1] == c+2 { // ']' is '[' + 2, and '}' is '{' + 2.
				tape = appendLeaf(tape, i, i+2)
				i += 2
				depth--
				if model != none {
					model = following(tape, open, tape[model].next)
				}
				break
			}
			// While a container is open, end is the index of its model.
			tape = append(tape, extent{start: uint32(i), end: model, next: open}) //nolint:gosec // Scan has checked the length.
			open, named = uint32(len(tape)-1), c == '{'                           //nolint:gosec // The tape has fewer extents than the text has bytes.
			if model != none {
				model = following(tape, open, model+1)
			}
			i = skipSpace(data, i+1)
			if i >= len(data) {
				return false
			}
			if data[i] == c+2 {
				break
			}
			if !named {
				goto value
			}
			d.enter(depth)
			goto name
		case 't':
			if !hasPrefix(data[i:], "true") {
				return false
			}
			i += len("true")
		case 'f':
			if !hasPrefix(data[i:], "false") {
				return false
			}
			i += len("false")
		case 'n':
			if !hasPrefix(data[i:], "null") {
				return false
			}
			i += len("null")
		default:
			begin := i
			if i, ok = scanNumber(data, i); !ok {
				return false
			}
			if i-begin >= long {
				tape = appendLeaf(tape, begin, i)
			}
		}
	ended:
		// A value has ended, or a container is empty.
		for {
			if i < len(data) && data[i] <= ' ' {
				i = skipSpace(data, i)
			}
			if open == none {
				d.tape = tape
				return i == len(data)
			}
			if i >= len(data) {
				return false
			}
			c := data[i]
			i++
			if c == ',' {
				break
			}
			if c != ']' && c != '}' || named != (c == '}') {
				return false
			}
			closed := &tape[open]
			was, at := closed.end, open
			open, closed.next, closed.end = closed.next, uint32(len(tape)), uint32(i) //nolint:gosec // The tape has fewer extents than the text has bytes.
			depth--
			named = open != none && data[tape[open].start] == '{'
			switch model = none; {
			case was != none && open != none && tape[open].end != none:
				model = following(tape, open, tape[was].next)
			case closed.end-closed.start >= alike:
				model = at
			}
		}
		if !named {
			continue
		}
		i = skipSpace(data, i)
	name:
		if i >= len(data) || data[i] != '"' {
			return false
		}
		begin := i
		d.escaped = false
		if i = shortString(data, i+1); i < 0 {
			if i, ok = d.scanString(data, -i); !ok {
				return false
			}
			if i-begin >= long {
				tape = appendLeaf(tape, begin, i)
			}
		}
		if d.levels[depth].mayRepeat(data, begin+1, i-1) || d.escaped && isRespelled(data[begin+1:i-1]) {
			d.suspect(open)
		}
		if i < len(data) && data[i] <= ' ' {
			i = skipSpace(data, i)
		}
		if i >= len(data) || data[i] != ':' {
			return false
		}
		i++
	}
}

// alike is the minimum length in bytes of a container that is the model of the next one beside it.
const alike = 512

// ends reports whether a value that starts with c may end at i. Only a number does not mark its own end.
func ends(data []byte, c byte, i int) bool {
	if c == '{' || c == '[' || c == '"' || i >= len(data) {
		return true
	}
	switch next := data[i]; next {
	case '.', '+', '-', 'e', 'E':
		return false
	default:
		return next < '0' || next > '9'
	}
}

// following returns at if it is within the model of the open container, else none.
func following(tape []extent, open, at uint32) uint32 {
	if open == none {
		return none
	}
	if around := tape[open].end; around == none || at >= tape[around].next {
		return none
	}
	return at
}

// appendCopy appends the extent at model and its contents, moved to offset i.
func appendCopy(tape []extent, model uint32, i int) []extent {
	first := tape[model]
	shift, places := uint32(i)-first.start, uint32(len(tape))-model //nolint:gosec // Differences and sums are modulo 2^32.
	for _, e := range tape[model:first.next] {
		tape = append(tape, extent{e.start + shift, e.end + shift, e.next + places})
	}
	return tape
}

func appendLeaf(tape []extent, begin, end int) []extent {
	return append(tape, extent{uint32(begin), uint32(end), uint32(len(tape) + 1)}) //nolint:gosec // Scan has checked the length.
}
