package oracle

import (
	"regexp"
	"strings"

	"github.com/fieldperm/fieldperm/test/exact"
)

// freeing is one row of the changes that cannot be charged to a client.
type freeing struct {
	// kinds is empty for every kind.
	kinds  string
	path   *regexp.Regexp
	create bool // only when the object is created
	// value is the only value, as JSON, that is free there if the field did not exist before. If it is empty, every value is free.
	value  string
	reason string
}

// freed lists the fields that the API server writes by itself for any request. Every row was reviewed. No row comes from fieldperm's
// catalogue.
var freed = []freeing{
	{path: exactly(".metadata.uid"), reason: "the API server draws it, and refuses another"},
	{path: exactly(".metadata.resourceVersion"), reason: "it is not stored; etcd's revision stands for it"},
	{path: exactly(".metadata.generation"), reason: "the API server counts changes of the specification"},
	{path: exactly(".metadata.creationTimestamp"), reason: "the API server's clock"},
	{path: exactly(".metadata.managedFields"), reason: "owners are judged by D8 and by what other appliers do next, not as a value"},
	{path: exactly(".metadata.deletionTimestamp"), reason: "only a deletion writes it, which is judged by itself"},
	{path: exactly(".metadata.deletionGracePeriodSeconds"), reason: "only a deletion writes it, which is judged by itself"},
	{path: exactly(".apiVersion"), create: true, reason: "C5: the identity of the new object"},
	{path: exactly(".kind"), create: true, reason: "C5: the identity of the new object"},
	{path: exactly(".metadata.name"), create: true, reason: "C5: the identity of the new object"},
	{path: exactly(".metadata.namespace"), create: true, reason: "C5: the identity of the new object"},
	{path: exactly(".metadata.generateName"), create: true, reason: "C5: the identity of the new object"},
	{kinds: "Event. ", path: regexp.MustCompile(`^\.(eventTime|firstTimestamp|lastTimestamp)$`), value: "null", reason: "the API server stores a time that is absent as null"},
	{kinds: "PersistentVolumeClaim. ", path: exactly(".status.phase"), value: `"Pending"`, reason: "a claim is stored without a phase when it is created; every reading gives it the default, so the next write stores that"},
}

func exactly(path string) *regexp.Regexp {
	return regexp.MustCompile("^" + regexp.QuoteMeta(path) + "$")
}

// free reports whether the API server made a change that no client can have made.
func free(c exact.Change) bool {
	if c.Default {
		return true // C5: the value is the default that the schema declares.
	}
	if written(c) {
		return true
	}
	for i := range freed {
		f := &freed[i]
		if (c.Create || !f.create) && (f.kinds == "" || strings.Contains(f.kinds, c.Kind.Kind+"."+c.Kind.Group+" ")) && f.path.MatchString(c.Path) &&
			(f.value == "" || c.Old() == nil && string(c.New()) == f.value) {
			return true
		}
	}
	return false
}
