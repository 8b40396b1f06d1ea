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

// spot is an object or all objects of a name or a namespace that a rule or a binding of a subject is about. form is "" for all that none names.
type spot struct {
	form  Form
	value string
	// of are the names in a namespace, nil for one object.
	of     []spot
	holder *holder
}

// ways returns the ways of a subject, for all objects first. Where a subject may change some objects only, the way has these as a condition.
func (c *Cluster) ways(w *Write, s Subject, see look) []Way {
	at := seen{w, s}
	spots, ok := c.spots[at]
	if !ok {
		spots = c.spotsOf(w, s)
		c.spots[at] = spots
	}
	return collect(spots, see)
}

func collect(spots []spot, see look) []Way {
	var out collected
	for i := range spots {
		at := &spots[i]
		switch {
		case at.holder != nil && len(spots) == 1:
			return see(at.holder)
		case at.holder != nil:
			out.add(see(at.holder), at.form, at.value)
		case len(at.of) > 0:
			out.add(collect(at.of, see), at.form, at.value)
		}
	}
	return out.sorted()
}

func (c *Cluster) spotsOf(w *Write, s Subject) []spot {
	if w.ofNamespaces() {
		return c.spotsOfNamespaces(w, s)
	}
	if !w.AllNamespaces {
		return c.spotsIn(w, s, w.Namespace)
	}
	out := []spot{{of: c.spotsIn(w, s, elsewhere)}}
	for _, namespace := range c.named.of(s) {
		out = append(out, spot{form: OnlyNamespaces, value: namespace, of: c.spotsIn(w, s, namespace)})
	}
	return out
}

// spotsIn returns the spots of one namespace: all names, and those of rules.
func (c *Cluster) spotsIn(w *Write, s Subject, namespace string) []spot {
	matches := c.matches(w, s, namespace)
	if len(matches) == 0 && c.policies == nil {
		return nil
	}
	if w.Name != "" {
		return []spot{{holder: c.holder(w, s, matches, object{namespace, w.Name})}}
	}
	out := []spot{{holder: c.holder(w, s, matches, object{namespace, elsewhere})}}
	for _, name := range namesIn(matches) {
		out = append(out, spot{form: OnlyNames, value: name, holder: c.holder(w, s, matches, object{namespace, name})})
	}
	return out
}

// spotsOfNamespaces is spotsOf for Namespaces. A RoleBinding in a Namespace counts for the Namespace.
func (c *Cluster) spotsOfNamespaces(w *Write, s Subject) []spot {
	if w.posts() {
		return c.spotsIn(w, s, "")
	}
	in := func(name string) *holder { return c.holder(w, s, c.matches(w, s, name), object{name, name}) }
	if w.Name != "" {
		return []spot{{holder: in(w.Name)}}
	}
	out := []spot{{holder: in(elsewhere)}}
	for _, name := range merged(c.named.of(s), namesIn(c.matches(w, s, elsewhere))) {
		out = append(out, spot{form: OnlyNames, value: name, holder: in(name)})
	}
	return out
}

// matches returns the rules of the subject about the resource in a namespace.
func (c *Cluster) matches(w *Write, s Subject, namespace string) []rbac.Match {
	u := s.User()
	asked := (&holder{write: w, user: u}).attributes(w.Verb, false)
	return slices.DeleteFunc(c.rbac.Matches(u, namespace), func(m rbac.Match) bool { return !rbac.Concerns(m.Rule, asked) })
}

// holder returns what is known about a subject and an object. Questions about other fields use the same, so that each verb is looked up once.
func (c *Cluster) holder(w *Write, s Subject, matches []rbac.Match, of object) *holder {
	return &holder{cluster: c, write: w, user: s.User(), matches: matches, object: of, options: map[string][]option{}, denials: map[string]denial{}, parameters: map[string][]verbs.Verb{}}
}

// seen is a subject of a write.
type seen struct {
	write   *Write
	subject Subject
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
