package access

import (
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/internal/rbac"
	"github.com/fieldperm/fieldperm/verbs"
)

// Write is the write that a question is about.
type Write struct {
	// Verb is create, update or patch.
	Verb                                  string
	Group, Version, Resource, Subresource string
	// Namespace is that of the objects, "" for a kind that has none.
	Namespace string
	// AllNamespaces means that the question is about the objects of all namespaces. Namespace is "".
	AllNamespaces bool
	// Name is that of the object, "" for all objects.
	Name string
	// TakesMarker means that the marker lets the write in (A1, A2).
	TakesMarker bool
	// OnFloor means that the write is on the floor for all users (W4).
	OnFloor bool
	// Absent means that fieldperm is not installed: only the generic permission counts, and no barrier holds.
	Absent bool
}

// posts reports whether the write makes a new object, whose name is not known in the authorization phase.
func (w *Write) posts() bool { return w.Verb == "create" && w.Subresource == "" }

// ofNamespaces reports whether the objects are Namespaces. A request for one is a request in it, except for one that makes it.
func (w *Write) ofNamespaces() bool { return w.Group == "" && w.Resource == "namespaces" }

// look returns what a user may do with one object.
type look func(*holder) []Way

// ways returns the ways of a subject, for all objects first. Where a subject may change some objects only, the way has these as a condition.
func (c *Cluster) ways(w *Write, s Subject, see look) []Way {
	if w.ofNamespaces() {
		return c.waysOfNamespaces(w, s, see)
	}
	namespaces := []string{w.Namespace}
	if w.AllNamespaces {
		namespaces = append([]string{elsewhere}, c.named.of(s)...)
	}
	var out collected
	for _, namespace := range namespaces {
		ways := c.waysIn(w, s, see, namespace)
		if namespace == namespaces[0] {
			out.add(ways, "", "")
			continue
		}
		out.add(ways, OnlyNamespaces, namespace)
	}
	return out.sorted()
}

// waysIn returns the ways in one namespace: for all names, and for those of rules.
func (c *Cluster) waysIn(w *Write, s Subject, see look, namespace string) []Way {
	matches := c.matches(w, s, namespace)
	if len(matches) == 0 && c.policies == nil {
		return nil
	}
	if w.Name != "" {
		return see(c.holder(w, s, matches, object{namespace, w.Name}))
	}
	var out collected
	out.add(see(c.holder(w, s, matches, object{namespace, elsewhere})), "", "")
	for _, name := range namesIn(matches) {
		out.add(see(c.holder(w, s, matches, object{namespace, name})), OnlyNames, name)
	}
	return out.ways
}

// waysOfNamespaces is ways for Namespaces. A RoleBinding in a Namespace counts for the Namespace.
func (c *Cluster) waysOfNamespaces(w *Write, s Subject, see look) []Way {
	if w.posts() {
		return c.waysIn(w, s, see, "")
	}
	in := func(name string) []Way { return see(c.holder(w, s, c.matches(w, s, name), object{name, name})) }
	if w.Name != "" {
		return in(w.Name)
	}
	var out collected
	out.add(in(elsewhere), "", "")
	for _, name := range merged(c.named.of(s), namesIn(c.matches(w, s, elsewhere))) {
		out.add(in(name), OnlyNames, name)
	}
	return out.sorted()
}

// matches returns the rules of the subject about the resource in a namespace.
func (c *Cluster) matches(w *Write, s Subject, namespace string) []rbac.Match {
	at := seen{w, s, object{namespace: namespace}}
	if found, ok := c.found[at]; ok {
		return found
	}
	u := s.User()
	asked := (&holder{write: w, user: u}).attributes(w.Verb, false)
	out := slices.DeleteFunc(c.rbac.Matches(u, namespace), func(m rbac.Match) bool { return !rbac.Concerns(m.Rule, asked) })
	c.found[at] = out
	return out
}

// holder returns what is known about a subject and an object. Questions about other fields use the same, so that each verb is looked up once.
func (c *Cluster) holder(w *Write, s Subject, matches []rbac.Match, of object) *holder {
	at := seen{w, s, of}
	if c.holders[at] == nil {
		c.holders[at] = &holder{cluster: c, write: w, user: s.User(), matches: matches, object: of, options: map[string][]option{}, denials: map[string]denial{}, parameters: map[string][]verbs.Verb{}}
	}
	return c.holders[at]
}

// seen is a subject with the object of a write.
type seen struct {
	write   *Write
	subject Subject
	object  object
}

// namesIn returns the names of objects in rules.
func namesIn(matches []rbac.Match) []string {
	var out []string
	for i := range matches {
		out = append(out, matches[i].Rule.ResourceNames...)
	}
	// No object has an empty name.
	return slices.DeleteFunc(merged(out, nil), func(name string) bool { return name == "" })
}

func merged(a, b []string) []string {
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}

// collected are ways for all objects, and ways for some that are not ways for all.
type collected struct {
	ways []Way
	all  map[string]bool
	// at is where in ways a way for some objects is.
	at map[string]int
}

// add adds the ways for one name or namespace. Ways for all come first, with no form.
func (c *collected) add(ways []Way, form Form, value string) {
	if c.all == nil {
		c.all, c.at = map[string]bool{}, map[string]int{}
	}
	for i := range ways {
		w := ways[i]
		key := w.key()
		if form == "" {
			c.all[key] = true
			c.ways = append(c.ways, w)
			continue
		}
		if c.all[key] {
			continue
		}
		same := strings.Join([]string{string(form), key, w.grants()}, "\x04")
		if at, ok := c.at[same]; ok {
			values := &c.ways[at].Conditions[0].Values
			*values = append(*values, value)
			continue
		}
		w.Conditions = append([]Condition{{Form: form, Values: []string{value}}}, w.Conditions...)
		c.at[same] = len(c.ways)
		c.ways = append(c.ways, w)
	}
}

func (c *collected) sorted() []Way {
	slices.SortStableFunc(c.ways, func(a, b Way) int { return compareWays(&a, &b) })
	return c.ways
}
