package tighten

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fieldperm/fieldperm/verbs"
)

// Resource is what a rule of RBAC names: a resource or a subresource, in any version.
type Resource struct {
	Group string
	// Name is deployments or deployments/scale.
	Name string
}

// String returns the resource in the way of kubectl: deployments/scale.apps.
func (r Resource) String() string {
	if r.Group == "" {
		return r.Name
	}
	return r.Name + "." + r.Group
}

// Split returns the resource and the subresource.
func (r Resource) Split() (name, subresource string) {
	name, subresource, _ = strings.Cut(r.Name, "/")
	return name, subresource
}

func compareResources(a, b Resource) int {
	return strings.Compare(a.Group+"\x00"+a.Name, b.Group+"\x00"+b.Name)
}

// Object names an object.
type Object struct{ Namespace, Name string }

// String returns namespace/name, or the name of an object without a namespace.
func (o Object) String() string {
	if o.Namespace == "" {
		return o.Name
	}
	return o.Namespace + "/" + o.Name
}

// These limits keep the memory for evidence constant. What is above them is counted as omitted, which is a gap.
const (
	maxResources  = 1024
	maxVerbs      = 16 * 1024
	maxNamespaces = 256
	maxNames      = 64 * 1024
	maxGroups     = 256
)

// Use is the use of one verb on one resource.
type Use struct {
	Count       int64
	First, Last time.Time
	Example     Object
	// Sources are the kinds of sources that have seen the use: "audit log", "observation".
	Sources []string
	// Namespaces are those of the written objects, "" among them for objects without one. MoreNamespaces says that there are others.
	Namespaces     map[string]bool
	MoreNamespaces bool
	// Names are the written objects, as far as the sources have them. MoreNames says that there are others.
	Names     map[Object]bool
	MoreNames bool
}

// Written is what the subject wrote of one resource.
type Written struct {
	// Verbs are the most specific granular verbs of the changed fields. The marker is among them: each write needs it.
	Verbs map[string]*Use
	// Unobserved are writes without the annotation of fieldperm.
	Unobserved int64
	// Cut are verbs that annotations left out because they were too long. None are writes with a change that no verb covers.
	Cut, None int64
}

// Evidence is what a subject was seen to write. The zero Evidence is empty. It is not safe for concurrent use.
type Evidence struct {
	Resources map[Resource]*Written
	// Groups are those of the users in the evidence.
	Groups map[string]bool
	// Omitted are uses of verbs that do not fit the limits.
	Omitted int64
	// Gaps say what the sources have missed.
	Gaps []string
	// Names says whether to remember the names of objects.
	Names bool

	verbs, names int
}

// written returns the row of a resource, or nil if there is no space for it.
func (e *Evidence) written(r Resource) *Written {
	w := e.Resources[r]
	if w == nil {
		if len(e.Resources) >= maxResources {
			e.Omitted++
			return nil
		}
		if e.Resources == nil {
			e.Resources = map[Resource]*Written{}
		}
		w = &Written{Verbs: map[string]*Use{}}
		e.Resources[r] = w
	}
	return w
}

// use returns the use of a verb, or nil if there is no space for it. The text of a new verb is copied.
func (e *Evidence) use(w *Written, verb string) *Use {
	u := w.Verbs[verb]
	if u == nil {
		if e.verbs >= maxVerbs && verb != verbs.Marker {
			e.Omitted++
			return nil
		}
		e.verbs++
		u = &Use{Namespaces: map[string]bool{}, Names: map[Object]bool{}}
		w.Verbs[strings.Clone(verb)] = u
	}
	return u
}

// add counts one use.
func (e *Evidence) add(w *Written, verb, source string, at time.Time, o Object) {
	u := e.use(w, verb)
	if u == nil {
		return
	}
	if u.Count == 0 {
		u.First, u.Last, u.Example = at, at, Object{strings.Clone(o.Namespace), strings.Clone(o.Name)}
		u.Sources = []string{source}
	}
	u.Count++
	if at.Before(u.First) {
		u.First = at
	}
	if at.After(u.Last) {
		u.Last = at
	}
	u.namespace(o.Namespace)
	e.name(u, o)
}

func (u *Use) namespace(namespace string) {
	switch {
	case u.Namespaces[namespace]:
	case len(u.Namespaces) >= maxNamespaces:
		u.MoreNamespaces = true
	default:
		u.Namespaces[strings.Clone(namespace)] = true
	}
}

func (e *Evidence) name(u *Use, o Object) {
	switch {
	case !e.Names || u.Names[o]:
	case e.names >= maxNames:
		u.MoreNames = true
	default:
		e.names++
		u.Names[Object{strings.Clone(o.Namespace), strings.Clone(o.Name)}] = true
	}
}

// Merge adds what another source has seen. Both may have seen the same writes, so the count of a verb is the larger one and not the sum.
func (e *Evidence) Merge(other *Evidence) {
	e.Omitted += other.Omitted
	e.Gaps = append(e.Gaps, other.Gaps...)
	for group := range other.Groups {
		e.group(group)
	}
	for _, r := range slices.SortedFunc(maps.Keys(other.Resources), compareResources) {
		from, w := other.Resources[r], e.written(r)
		if w == nil {
			continue
		}
		w.Unobserved = max(w.Unobserved, from.Unobserved)
		w.Cut = max(w.Cut, from.Cut)
		w.None = max(w.None, from.None)
		for _, verb := range slices.Sorted(maps.Keys(from.Verbs)) {
			if u := e.use(w, verb); u != nil {
				e.merge(u, from.Verbs[verb])
			}
		}
	}
}

func (e *Evidence) merge(u, from *Use) {
	if u.Count == 0 {
		u.First, u.Last, u.Example = from.First, from.Last, from.Example
	}
	u.Count = max(u.Count, from.Count)
	if from.First.Before(u.First) {
		u.First = from.First
	}
	if from.Last.After(u.Last) {
		u.Last = from.Last
	}
	for _, source := range from.Sources {
		if !slices.Contains(u.Sources, source) {
			u.Sources = append(u.Sources, source)
		}
	}
	slices.Sort(u.Sources)
	u.MoreNamespaces = u.MoreNamespaces || from.MoreNamespaces
	u.MoreNames = u.MoreNames || from.MoreNames
	for namespace := range from.Namespaces {
		u.namespace(namespace)
	}
	for o := range from.Names {
		e.name(u, o)
	}
}

func (e *Evidence) group(name string) {
	if e.Groups[name] || len(e.Groups) >= maxGroups {
		return
	}
	if e.Groups == nil {
		e.Groups = map[string]bool{}
	}
	e.Groups[strings.Clone(name)] = true
}

// Empty reports whether no write was seen.
func (e *Evidence) Empty() bool { return len(e.Resources) == 0 }

// sorted returns the resources in order.
func (e *Evidence) sorted() []Resource {
	return slices.SortedFunc(maps.Keys(e.Resources), compareResources)
}

// Generalize replaces verbs with a parameter by the verb without it, for these names only: image makes granular:image of
// granular:image(web). RESOURCE=NAME, deployments.apps=image, is about one resource. It returns the names that no verb has.
func (e *Evidence) Generalize(names []string) (unused []string) {
	used := map[string]bool{}
	for _, r := range e.sorted() {
		w := e.Resources[r]
		for _, text := range slices.Sorted(maps.Keys(w.Verbs)) {
			verb, err := verbs.Parse(text)
			if err != nil {
				continue
			}
			here := r.String() + "=" + verb.Name()
			if !slices.Contains(names, verb.Name()) && !slices.Contains(names, here) {
				continue
			}
			used[verb.Name()], used[here] = true, true
			if !verb.HasParameter() {
				continue
			}
			from := w.Verbs[text]
			delete(w.Verbs, text)
			general := verb.WithoutParameter().String()
			if u := w.Verbs[general]; u != nil {
				total := u.Count + from.Count
				e.merge(u, from)
				u.Count = total
			} else {
				w.Verbs[general] = from
			}
		}
	}
	for _, name := range names {
		if !used[name] {
			unused = append(unused, name)
		}
	}
	return unused
}
