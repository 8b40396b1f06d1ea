package plugin

import (
	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/internal/sources"
	"github.com/fieldperm/fieldperm/schema"
)

// answer is the output of explain as JSON and YAML. Its names are a contract: they do not change, and lists that may be empty are left
// out or [].
type answer struct {
	Group       string `json:"group"`
	Version     string `json:"version"`
	Kind        string `json:"kind"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
	// Path is "" for the object itself.
	Path string `json:"path"`
	Type string `json:"type"`
	Role string `json:"role,omitempty"`
	// Whole is the path of the atomic value that the field is a part of: a change needs a verb of the first chain, which is that of the whole.
	Whole *string `json:"whole,omitempty"`
	// Chains has one chain. It has one for each object with a barrier, if the field becomes a part of several objects: a change needs a
	// verb of each whose barrier holds.
	Chains [][]linkEntry `json:"chains"`
	// Verbs are the verbs of the field itself.
	Verbs  []verbEntry  `json:"verbs"`
	Fields []fieldEntry `json:"fields"`
	// Lossy and Instead are about writes through this version.
	Lossy   bool   `json:"lossy,omitempty"`
	Instead string `json:"instead,omitempty"`
	// Truncated means that there are more fields than are listed.
	Truncated bool           `json:"truncated,omitempty"`
	Missing   []missingEntry `json:"missing,omitempty"`
}

// linkEntry is a verb of a chain.
type linkEntry struct {
	// Verbs are the generic verbs, or one granular verb.
	Verbs []string `json:"verbs"`
	// At is the path of the verb, and Covers are the paths in the kind at which it is. It covers these and what is below them. They are left
	// out for the generic permission.
	At     *string  `json:"at,omitempty"`
	Covers []string `json:"covers,omitempty"`
	// OfOne is the parameter that the verb is limited to one value of.
	OfOne string `json:"ofOne,omitempty"`
	// Counts means that the verb covers the field, if no condition of Lost is true.
	Counts  bool          `json:"counts"`
	Lost    []lossEntry   `json:"lost,omitempty"`
	Sources []originEntry `json:"sources,omitempty"`
}

// lossEntry is a reason why a verb does not cover the field.
type lossEntry struct {
	By   string   `json:"by"`
	At   string   `json:"at"`
	When []string `json:"when,omitempty"`
	Set  string   `json:"set,omitempty"`
	For  string   `json:"for,omitempty"`
}

type originEntry struct {
	Form     schema.Form `json:"form"`
	Document string      `json:"document,omitempty"`
}

// verbEntry is a verb of a field.
type verbEntry struct {
	Verb       string         `json:"verb"`
	Parameter  string         `json:"parameter,omitempty"`
	Expression string         `json:"expression,omitempty"`
	Barriers   []barrierEntry `json:"barriers,omitempty"`
	Powers     []schema.Power `json:"powers,omitempty"`
	Sources    []originEntry  `json:"sources,omitempty"`
}

// barrierEntry is a barrier on a verb. It always holds if it has no conditions. Of the conditions of a schema one is enough; of those of
// a set all must be true.
type barrierEntry struct {
	When []string `json:"when,omitempty"`
	// Set is the UncoveredPermissionSet that makes it; left out if the source of the verb does.
	Set string `json:"set,omitempty"`
	// Verb is the verb of the set, if it is another than that of the field.
	Verb string `json:"verb,omitempty"`
	// Actions are what the set does in place of refusing.
	Actions    []string `json:"actions,omitempty"`
	StatusOnly bool     `json:"statusOnly,omitempty"`
}

// fieldEntry is a field below.
type fieldEntry struct {
	Path  string      `json:"path"`
	Type  string      `json:"type"`
	Role  string      `json:"role,omitempty"`
	Verbs []verbEntry `json:"verbs,omitempty"`
	// Repeats is the path above that has the same fields, if the type contains itself.
	Repeats *string      `json:"repeats,omitempty"`
	Fields  []fieldEntry `json:"fields,omitempty"`
}

type missingEntry struct {
	What  string `json:"what"`
	Error string `json:"error"`
}

// missingEntries returns nil if nothing is missing.
func missingEntries(missing []sources.Missing) []missingEntry {
	var out []missingEntry
	for _, m := range missing {
		out = append(out, missingEntry{m.What, m.Err.Error()})
	}
	return out
}

func newAnswer(p *fieldtree.Place, recursive bool, missing []sources.Missing) *answer {
	k, n := p.Kind, p.Node()
	a := &answer{
		Group: k.Group, Version: k.Version, Kind: k.Kind, Resource: k.Resource.Resource, Subresource: k.Subresource,
		Path: p.Path.String(), Type: n.Type, Role: string(n.Role), Chains: [][]linkEntry{}, Verbs: verbEntries(p), Fields: []fieldEntry{},
		Lossy: k.Lossy, Instead: k.Instead,
	}
	places := k.Verbs()
	if whole := p.Whole(); whole != nil {
		path := whole.Path.String()
		a.Whole = &path
	}
	for _, chain := range p.Charges() {
		links := []linkEntry{}
		for i := range chain {
			links = append(links, newLinkEntry(&chain[i], places))
		}
		a.Chains = append(a.Chains, links)
	}
	left := maxFields
	a.Fields = append(a.Fields, fieldEntries(p, recursive, &left)...)
	a.Truncated = left < 0
	a.Missing = missingEntries(missing)
	return a
}

// genericVerbs are the verbs of the generic permission.
var genericVerbs = []string{"create", "update", "patch"}

func newLinkEntry(l *fieldtree.Link, places map[string][]string) linkEntry {
	out := linkEntry{Verbs: genericVerbs, Counts: l.Counts()}
	if l.Of != nil {
		at := l.Path.String()
		out.Verbs, out.At, out.Covers, out.Sources = []string{l.Verb}, &at, places[l.Of.Text], originEntries(l.Of)
	}
	if l.OfOne {
		out.OfOne = l.Of.Parameter
	}
	for _, loss := range l.Lost {
		out.Lost = append(out.Lost, lossEntry{loss.By, loss.Path.String(), loss.When, loss.Set, loss.One})
	}
	return out
}

func originEntries(v *fieldtree.Verb) []originEntry {
	var out []originEntry
	for _, o := range v.Origins {
		out = append(out, originEntry{o.Form, o.Source})
	}
	return out
}

func verbEntries(p *fieldtree.Place) []verbEntry {
	out := []verbEntry{}
	for _, v := range p.Node().Verbs {
		entry := verbEntry{Verb: v.Text, Parameter: v.Parameter, Expression: v.Expression, Powers: v.Powers, Sources: originEntries(v)}
		if v.Bars() {
			entry.Barriers = append(entry.Barriers, barrierEntry{When: v.ExcludedWhen})
		}
		for _, b := range p.SetsOn(v) {
			barrier := barrierEntry{When: b.When(), Set: b.Source, StatusOnly: b.StatusOnly}
			if text := b.Verb.String(); text != v.Text {
				barrier.Verb = text
			}
			for _, action := range b.Actions {
				barrier.Actions = append(barrier.Actions, string(action))
			}
			entry.Barriers = append(entry.Barriers, barrier)
		}
		out = append(out, entry)
	}
	return out
}

// maxFields bounds the fields of one answer, because a type may unfold without bound.
const maxFields = 20_000

// fieldEntries returns the fields below a place: one level, with the fields of the items of a list, or all levels.
func fieldEntries(p *fieldtree.Place, recursive bool, left *int) []fieldEntry {
	var out []fieldEntry
	for _, c := range p.Node().Children {
		if *left--; *left < 0 {
			break
		}
		below := p.Child(c)
		entry := fieldEntry{Path: below.Path.String(), Type: c.Type, Role: string(c.Role), Verbs: verbEntries(below)}
		if again := below.Repeats(); again != nil {
			path := again.Path.String()
			entry.Repeats = &path
		} else if recursive || c.Any {
			entry.Fields = fieldEntries(below, recursive, left)
		}
		out = append(out, entry)
	}
	return out
}
