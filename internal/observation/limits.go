package observation

import (
	"unicode/utf8"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

const (
	// maxBytes bounds the text of a status. An API server stores objects of up to 1.5 MB.
	maxBytes = 768 << 10
	// perRow and perVerb are about the size of a row and of the use of a verb in bytes, without their names.
	perRow, perVerb = 64, 160
)

// fits reports whether the API type has room for a text. API servers count characters.
func fits(text string, limit int) bool { return utf8.RuneCountInString(text) <= limit }

func (r row) fits() bool {
	return fits(r.user, v1alpha1.MaxObservedUserLength) && fits(r.group, v1alpha1.MaxObservedGroupLength) && fits(r.resource, v1alpha1.MaxObservedResourceLength)
}

func (r row) size() int { return perRow + stored(r.user) + stored(r.group) + stored(r.resource) }

// describe adds the object of an update to the use of a verb. A name that the API type has no room for is left out: a shorter one could be
// that of another object. Names of Roles, for example, have no limit.
func (u *update) describe(used *v1alpha1.ObservedVerb) {
	used.Example.Namespace = u.namespace
	if u.namespace != "" {
		used.Namespaces = []string{u.namespace}
	}
	if fits(u.name, v1alpha1.MaxObservedNameLength) {
		used.Example.Name = u.name
	}
}

func sizeOfVerb(used *v1alpha1.ObservedVerb) int {
	size := perVerb + stored(used.Verb) + stored(used.Example.Namespace) + stored(used.Example.Name)
	for _, namespace := range used.Namespaces {
		size += stored(namespace)
	}
	return size
}

// stored returns how many bytes API servers store for a text. JSON needs six for some characters, and a user may choose a name of these.
func stored(text string) int {
	size := len(text)
	for _, r := range text {
		switch {
		case r < ' ', r == '<', r == '>', r == '&', r == utf8.RuneError:
			size += 5
		case r == '\u2028', r == '\u2029':
			size += 3
		case r == '"', r == '\\':
			size++
		}
	}
	return size
}
