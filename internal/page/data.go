package page

import (
	"slices"

	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/schema"
)

// data is the data of the page. Numbers named after a table are indexes into it. Zero values are left out.
type data struct {
	Title string `json:"title"`
	// Strings are the names of fields and the types.
	Strings []string    `json:"strings"`
	Powers  []powerData `json:"powers"`
	Origins []origin    `json:"origins"`
	Verbs   []verbData  `json:"verbs"`
	Sets    []setData   `json:"sets"`
	Nodes   []nodeData  `json:"nodes"`
	Kinds   []kindData  `json:"kinds"`
	Access  *accessData `json:"access,omitempty"`
}

type powerData struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

type origin struct {
	Form   schema.Form `json:"form"`
	Source string      `json:"source,omitempty"`
}

type verbData struct {
	Text string `json:"text"`
	// Base is the verb without its parameter, if it has one.
	Base       string   `json:"base,omitempty"`
	Parameter  string   `json:"parameter,omitempty"`
	Expression string   `json:"expression,omitempty"`
	Excluded   bool     `json:"excluded,omitempty"`
	When       []string `json:"when,omitempty"`
	Powers     []int    `json:"powers,omitempty"`
	Origins    []int    `json:"origins,omitempty"`
}

type setData struct {
	Source string `json:"source"`
	Verb   string `json:"verb"`
	// One is the value of the parameter of the verb, if it has one.
	One     string   `json:"one,omitempty"`
	When    []string `json:"when,omitempty"`
	Actions []string `json:"actions,omitempty"`
}

// nodeData is a place. Fields alternates the index of a name and the index of a node; the name of any item or value is -1.
type nodeData struct {
	Type  int    `json:"t"`
	Role  string `json:"r,omitempty"`
	Verbs []int  `json:"v,omitempty"`
	// Barring is that of fieldtree.Node.
	Barring []int   `json:"barring,omitempty"`
	Trees   [][]int `json:"trees,omitempty"`
	Beside  []int   `json:"beside,omitempty"`
	Fields  []int   `json:"f,omitempty"`
}

type kindData struct {
	Group    string `json:"group"`
	Version  string `json:"version"`
	Kind     string `json:"kind"`
	Resource string `json:"resource"`
	Root     int    `json:"root"`
	// Sets are the barriers of sets, each with the verbs of the kind that it is on.
	Sets    []setOn `json:"sets,omitempty"`
	Lossy   bool    `json:"lossy,omitempty"`
	Instead string  `json:"instead,omitempty"`
}

type setOn struct {
	Set        int   `json:"set"`
	Verbs      []int `json:"verbs"`
	StatusOnly bool  `json:"statusOnly,omitempty"`
}

// encoder fills the tables.
type encoder struct {
	data
	strings map[string]int
	powers  map[schema.Power]int
	origins map[schema.Origin]int
	verbs   map[*fieldtree.Verb]int
	sets    map[string]int
	nodes   map[*fieldtree.Node]int
}

func newEncoder(title string) *encoder {
	return &encoder{
		data: data{
			Title: title, Strings: []string{}, Powers: []powerData{}, Origins: []origin{}, Verbs: []verbData{}, Sets: []setData{}, Nodes: []nodeData{}, Kinds: []kindData{},
		},
		strings: map[string]int{}, powers: map[schema.Power]int{}, origins: map[schema.Origin]int{}, verbs: map[*fieldtree.Verb]int{}, sets: map[string]int{}, nodes: map[*fieldtree.Node]int{},
	}
}

func (e *encoder) forest(f *fieldtree.Forest) {
	for _, p := range schema.AllPowers() {
		e.powers[p] = len(e.Powers)
		e.Powers = append(e.Powers, powerData{string(p), p.Sentence()})
	}
	for _, k := range f.Kinds {
		e.kind(k)
	}
}

func (e *encoder) kind(k *fieldtree.Kind) {
	out := kindData{Group: k.Group, Version: k.Version, Kind: k.Kind, Resource: k.ResourceName(), Root: e.node(k.Root), Lossy: k.Lossy, Instead: k.Instead}
	within := map[*fieldtree.Verb]bool{}
	verbsWithin(k.Root, map[*fieldtree.Node]bool{}, within)
	for _, b := range k.Sets {
		on := setOn{Set: e.set(b), StatusOnly: b.StatusOnly}
		// In the order of the table, so that equal trees give equal pages.
		for v, i := range e.inOrder(within) {
			if b.On(v) {
				on.Verbs = append(on.Verbs, i)
			}
		}
		if len(on.Verbs) > 0 {
			out.Sets = append(out.Sets, on)
		}
	}
	e.Kinds = append(e.Kinds, out)
}

func (e *encoder) node(n *fieldtree.Node) int {
	if i, known := e.nodes[n]; known {
		return i
	}
	i := len(e.Nodes)
	e.nodes[n] = i
	e.Nodes = append(e.Nodes, nodeData{})
	out := nodeData{Type: e.text(n.Type), Role: string(n.Role), Verbs: e.list(n.Verbs), Barring: e.list(n.Barring), Beside: e.list(n.Beside)}
	for _, tree := range n.Trees {
		out.Trees = append(out.Trees, append([]int{}, e.list(tree)...))
	}
	for _, c := range n.Children {
		name := -1
		if !c.Any {
			name = e.text(c.Name)
		}
		out.Fields = append(out.Fields, name, e.node(c.Node))
	}
	e.Nodes[i] = out
	return i
}

func (e *encoder) list(verbs []*fieldtree.Verb) []int {
	var out []int
	for _, v := range verbs {
		out = append(out, e.verb(v))
	}
	return out
}

func (e *encoder) verb(v *fieldtree.Verb) int {
	if i, known := e.verbs[v]; known {
		return i
	}
	out := verbData{Text: v.Text, Parameter: v.Parameter, Expression: v.Expression, Excluded: v.Excluded, When: v.ExcludedWhen}
	if v.Parameter != "" {
		out.Base = v.Base.String()
	}
	for _, p := range v.Powers {
		out.Powers = append(out.Powers, e.powers[p])
	}
	for _, o := range v.Origins {
		i, known := e.origins[o]
		if !known {
			i = len(e.Origins)
			e.origins[o] = i
			e.Origins = append(e.Origins, origin{o.Form, o.Source})
		}
		out.Origins = append(out.Origins, i)
	}
	e.verbs[v] = len(e.Verbs)
	e.Verbs = append(e.Verbs, out)
	return e.verbs[v]
}

func (e *encoder) set(b *fieldtree.SetBarrier) int {
	key := b.Source + " " + b.Verb.String()
	if i, known := e.sets[key]; known {
		return i
	}
	out := setData{Source: b.Source, Verb: b.Verb.String(), When: b.When()}
	out.One, _ = b.Verb.Parameter()
	for _, a := range b.Actions {
		out.Actions = append(out.Actions, string(a))
	}
	e.sets[key] = len(e.Sets)
	e.Sets = append(e.Sets, out)
	return e.sets[key]
}

// text returns the index of a string.
func (e *encoder) text(s string) int {
	if i, known := e.strings[s]; known {
		return i
	}
	e.strings[s] = len(e.Strings)
	e.Strings = append(e.Strings, s)
	return e.strings[s]
}

// inOrder visits verbs with their indexes, in the order of the indexes.
func (e *encoder) inOrder(some map[*fieldtree.Verb]bool) func(func(*fieldtree.Verb, int) bool) {
	byIndex := make([]*fieldtree.Verb, len(e.Verbs))
	for v, i := range e.verbs {
		byIndex[i] = v
	}
	return func(yield func(*fieldtree.Verb, int) bool) {
		for i, v := range byIndex {
			if some[v] && !yield(v, i) {
				return
			}
		}
	}
}

// verbsWithin adds the verbs at and below a node.
func verbsWithin(n *fieldtree.Node, seen map[*fieldtree.Node]bool, into map[*fieldtree.Verb]bool) {
	if seen[n] {
		return
	}
	seen[n] = true
	for _, v := range n.Verbs {
		into[v] = true
	}
	for _, tree := range append(slices.Clip(n.Trees), n.Beside) {
		for _, v := range tree {
			into[v] = true
		}
	}
	for _, c := range n.Children {
		verbsWithin(c.Node, seen, into)
	}
}
