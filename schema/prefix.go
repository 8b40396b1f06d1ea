package schema

import (
	"strings"
)

// isLongPrefix reports whether a key that a map singles out is a prefix with more than one slash. Of the key of a value only the part before the
// first slash is looked up (Map.Child), so such a prefix would hold for no key, and its barrier for nothing.
func isLongPrefix(key string) bool {
	return strings.HasSuffix(key, "/") && strings.IndexByte(key, '/') < len(key)-1
}

// prefixed returns the faults of the entries at and below a key, if the key is a prefix with more than one slash.
func (o *overlay) prefixed(key string) []error {
	if !isLongPrefix(key) {
		return nil
	}
	var errs []error
	first := key[:strings.IndexByte(key, '/')+1]
	for _, g := range o.guards() {
		errs = append(errs, g.fault("prefix %q: has a slash before its end, and would hold for no key: end it at the first slash, %q, or name a whole key", key, first))
	}
	return errs
}

// guards returns the guards at and below a place.
func (o *overlay) guards() []*guard {
	if o == nil {
		return nil
	}
	out := o.any.guards()
	if o.claim != nil {
		out = append(out, o.claim)
	}
	for _, name := range sortedKeys(o.fields) {
		out = append(out, o.fields[name].guards()...)
	}
	return out
}
