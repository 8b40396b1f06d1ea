package authz

import (
	"sync"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/admission"
)

// identity is the user and the object of a request: everything that the checks of one request share, except the verb. It is
// immutable.
type identity struct {
	// AttributesRecord describes the object. Its user and its verb are not set.
	authorizer.AttributesRecord

	user, uid string
	groups    []string
	// extra does not contain A4's key.
	extra []extraValues

	once    sync.Once
	written string
}

// text returns the part of the cache key that all checks of the request share. The first call computes it.
func (i *identity) text() string {
	i.once.Do(func() {
		c := &check{identity: i}
		i.written = identityOf(c.GetUser(), i.extra, c)
	})
	return i.written
}

// check is a question about one verb, in the form that authorizers take.
type check struct {
	*identity
	verb string
	// generic is true for a check of the generic permission. The user's extra then has A4's key, and the cache key differs.
	generic bool
}

var _ authorizer.Attributes = &check{}

func (c *check) key() key { return key{identity: c.text(), verb: c.verb, generic: c.generic} }

// GetUser returns the author of the request.
func (c *check) GetUser() user.Info { return (*author)(c) }

// GetVerb returns the verb.
func (c *check) GetVerb() string { return c.verb }

// IsReadOnly reports whether the verb is read-only.
func (c *check) IsReadOnly() bool { return authorizer.AttributesRecord{Verb: c.verb}.IsReadOnly() }

// author is the user of a check.
type author check

// GetName returns the name.
func (a *author) GetName() string { return a.user }

// GetUID returns the UID.
func (a *author) GetUID() string { return a.uid }

// GetGroups returns the groups.
func (a *author) GetGroups() []string { return a.groups }

// GetExtra returns the user's own extra, plus A4's key for a check of the generic permission. Every call makes a new map: only
// authorizers that send a request over the network read it.
func (a *author) GetExtra() map[string][]string {
	extra := make(map[string][]string, len(a.extra)+1)
	for _, e := range a.extra {
		extra[e.key] = e.values
	}
	if a.generic {
		extra[admission.GenericOnlyKey] = []string{"true"}
	}
	return extra
}
