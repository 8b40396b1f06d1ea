package schema

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// mostNodes is the maximum number of nodes of a kind at and above entries. Nodes with the same entries are several if the paths to them emit other
// parameters, and a value that may be a list or a map emits one or none: each such step of a path doubles the nodes.
const mostNodes = 50_000

// room counts the nodes of a kind, and which documents they are of.
type room struct {
	made int
	// takers are the documents that are not of the catalogue.
	takers map[string]*taker
	full   bool
}

// taker is a document with the number of nodes at its entries, and one of these entries.
type taker struct {
	nodes int
	entry *guard
}

func newRoom() room { return room{takers: map[string]*taker{}} }

// take counts a node, and each barrier that holds there. It reports false after the last one.
func (r *room) take(o *overlay) bool {
	r.made++
	for _, l := range o.levels() {
		r.made += len(l.barriers)
	}
	for _, g := range o.own() {
		r.credit(g)
	}
	return r.made <= mostNodes
}

// credit counts a node for the document of a guard.
func (r *room) credit(g *guard) {
	if g.rank <= RankCatalogue {
		return
	}
	blamed := g.blamed()
	if r.takers[blamed] == nil {
		r.takers[blamed] = &taker{entry: g}
	}
	r.takers[blamed].nodes++
}

// fault returns the fault of a kind that has no more room, once, and then nil. It is of the document with the most nodes: the catalogue has room for
// every kind, so that a fault in it would make all kinds fail for what one document says. topology is the source of the types.
func (r *room) fault(topology string, at fieldpath.Pattern) *Error {
	if r.full {
		return nil
	}
	r.full = true
	err := &Error{Source: topology}
	sources := sortedKeys(r.takers)
	if len(sources) > 0 {
		most := slices.MaxFunc(sources, func(a, b string) int { return cmp.Compare(r.takers[a].nodes, r.takers[b].nodes) })
		err.Source, err.Pointer = most, r.takers[most].entry.entry.Pointer
	}
	err.Message = fmt.Sprintf("%s: the entries of the kind stand for more than %d places: leave out parameter sources of paths through fields that the type does not know, and entries for all names and one at several steps of a path", orRoot(at), mostNodes)
	return err
}
