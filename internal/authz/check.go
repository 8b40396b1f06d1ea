package authz

import (
	"sync"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/admission"
)

// identity is who asks and about what: all of a request's checks but their verbs. It does not change.
type identity struct {
	// AttributesRecord is about what. It has neither a user nor a verb.
	authorizer.AttributesRecord

	user, uid string
	groups    []string
	// extra has not A4's key.
	extra []extraValues

	once    sync.Once
	written string
}

// text is in the keys of all checks. It is written when the first is asked for.
func (i *identity) text() string {
	i.once.Do(func() {
		c := &check{identity: i}
		i.written = identityOf(c.GetUser(), i.extra, c)
	})
	return i.written
}

// check is a question about one verb, as authorizers see it.
type check struct {
	*identity
	verb string
	// generic asks for the generic permission: the user's extra has A4's key, and the key of the question
	// says so.
	generic bool
}

var _ authorizer.Attributes = &check{}

func (c *check) key() key { return key{identity: c.text(), verb: c.verb, generic: c.generic} }

// GetUser returns whoever asks.
func (c *check) GetUser() user.Info { return (*author)(c) }

// GetVerb returns the verb.
func (c *check) GetVerb() string { return c.verb }

// IsReadOnly is about the verb.
func (c *check) IsReadOnly() bool { return authorizer.AttributesRecord{Verb: c.verb}.IsReadOnly() }

// author is whoever asks a check.
type author check

// GetName returns the name.
func (a *author) GetName() string { return a.user }

// GetUID returns the UID.
func (a *author) GetUID() string { return a.uid }

// GetGroups returns the groups.
func (a *author) GetGroups() []string { return a.groups }

// GetExtra returns the user's own extra, and A4's key where it is asked for the generic permission. It is
// made anew each time: only who asks over the network wants it.
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
