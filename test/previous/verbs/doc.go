// Package verbs is the grammar of granular permission verbs:
//
//	verb      = "granular" | "granular:" ( "*" | name [ "(" parameter ")" ] )
//	name      = [ domain "/" ] lowerCamelCase
//	parameter = percent-encoded UTF-8 of 1 to 1024 bytes
//
// Start at Verb. The package imports nothing of fieldperm; every other package may import it. Source: KEP-3617, "Permission Description
// System".
package verbs
