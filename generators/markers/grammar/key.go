package grammar

import (
	"slices"
	"strings"
)

// Key is a permission key without its prefix: "verb" in +permission-verb and in x-kubernetes-permission-verb.
type Key string

// The keys, in the order of the reference.
const (
	Verb       Key = "verb"
	Source     Key = "parameter-source"
	By         Key = "parameterized-by"
	Treatment  Key = "parameter-treatment"
	Expression Key = "parameter-expression"
	Excluded   Key = "excluded"
	When       Key = "excluded-when"
	Include    Key = "include"
)

const (
	markerPrefix    = "permission-"
	extensionPrefix = "x-kubernetes-permission-"
	// openAPITag is the marker of openapi-gen whose value may be a vendor extension.
	openAPITag = "k8s:openapi-gen"
)

// Keys returns all keys.
func Keys() []Key {
	return []Key{Verb, Source, By, Treatment, Expression, Excluded, When, Include}
}

// Marker returns the name of the key's marker: "+permission-verb".
func (k Key) Marker() string { return "+" + markerPrefix + string(k) }

// Extension returns the name of the key in a schema: "x-kubernetes-permission-verb".
func (k Key) Extension() string { return extensionPrefix + string(k) }

// isExpression reports whether the value is CEL, which may have spaces and quotes.
func (k Key) isExpression() bool { return k == Expression || k == When }

// keyOf returns the key of a name with one of the prefixes.
func keyOf(prefix, name string) (Key, bool) {
	rest, ok := strings.CutPrefix(name, prefix)
	return Key(rest), ok && slices.Contains(Keys(), Key(rest))
}

// names returns the names of all keys with a prefix.
func names(prefix string) []string {
	out := make([]string, 0, len(Keys()))
	for _, k := range Keys() {
		out = append(out, prefix+string(k))
	}
	return out
}
