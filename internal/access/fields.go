package access

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/internal/page"
	"github.com/fieldperm/fieldperm/schema"
)

// Of returns who may change which fields of a kind: the path of each field whose subjects are others than those of the nearest listed path above
// it, or hold it in another way. of names the objects. The second result is true if there are more fields than were looked at.
func (c *Cluster) Of(w *Write, k *fieldtree.Kind, of string) (access *page.Access, truncated bool) {
	f := &fields{cluster: c, write: w, known: map[string][]page.Holder{}, out: &page.Access{Kind: k, Object: of, Paths: map[string][]page.Holder{}}, left: maxLooked}
	for _, s := range c.named.subjects {
		f.out.Subjects = append(f.out.Subjects, page.Subject{Kind: s.Kind, Name: s.String()})
	}
	f.visit(k.Place(), nil, true)
	f.compact()
	return f.out, f.left < 0
}

type fields struct {
	cluster *Cluster
	write   *Write
	// known has the holders of equal chains.
	known map[string][]page.Holder
	out   *page.Access
	left  int
}

func (f *fields) visit(p *fieldtree.Place, above []page.Holder, first bool) {
	holders := above
	if first || changes(p) {
		holders = f.holders(p)
		if first || !slices.Equal(holders, above) {
			f.out.Paths[p.Path.String()] = holders
		}
	}
	for _, c := range p.Node().Children {
		below := p.Child(c)
		if f.left--; f.left < 0 || below.Repeats() != nil {
			continue
		}
		f.visit(below, holders, false)
	}
}

// changes reports whether the holders of a place may be others than those of the place above. A set on the status that names the verb of the
// root holds from the status on.
func changes(p *fieldtree.Place) bool {
	n := p.Node()
	return len(n.Verbs) > 0 || len(n.Trees) > 0 || n.Role != schema.RoleNone || len(p.Path) == 1 && isStatus(p.Path.String())
}

func (f *fields) holders(p *fieldtree.Place) []page.Holder {
	of := fieldOf(f.write, p)
	key := f.cluster.signature(of)
	if found, ok := f.known[key]; ok {
		return found
	}
	out := []page.Holder{}
	rows := f.cluster.whoCan(f.write, of)
	for i := range rows {
		at, _ := slices.BinarySearchFunc(f.cluster.named.subjects, rows[i].Subject, compareSubjects)
		out = append(out, page.Holder{Subject: at, How: string(rows[i].How()), Through: rows[i].Ways[0].through()})
	}
	f.known[key] = out
	return out
}

// signature is equal only for fields of a kind that the same subjects may change in the same way. Without policies a verb that no rule names
// makes no difference, so that most fields of a kind have one of a few signatures.
func (c *Cluster) signature(f *field) string {
	if f.unchanged {
		return ""
	}
	var out strings.Builder
	out.WriteString(strconv.FormatBool(f.free))
	for _, chain := range f.chains {
		out.WriteString("\x01")
		for i := range chain {
			l := &chain[i]
			if i > 0 && !c.mayHold(l.Verb) {
				continue
			}
			out.WriteString("\x02" + l.Verb + strconv.FormatBool(l.OfOne))
			for _, loss := range l.Lost {
				out.WriteString("\x03" + loss.By + "\x04" + loss.Set + "\x04" + loss.One + "\x04" + strings.Join(loss.When, "\x05"))
			}
		}
	}
	return out.String()
}

// compact leaves out the subjects that may change nothing.
func (f *fields) compact() {
	used := make([]bool, len(f.out.Subjects))
	for _, holders := range f.out.Paths {
		for _, h := range holders {
			used[h.Subject] = true
		}
	}
	at := make([]int, len(used))
	var kept []page.Subject
	for i, is := range used {
		at[i] = len(kept)
		if is {
			kept = append(kept, f.out.Subjects[i])
		}
	}
	f.out.Subjects = kept
	for path, holders := range f.out.Paths {
		moved := make([]page.Holder, len(holders))
		for i, h := range holders {
			moved[i] = page.Holder{Subject: at[h.Subject], How: h.How, Through: h.Through}
		}
		f.out.Paths[path] = moved
	}
}
