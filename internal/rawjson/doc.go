// Package rawjson reads JSON where it stands. Scan looks at each byte of a text once, refuses what is no
// JSON, and remembers where every object and list ends; a Value then is a place in the text, and going
// over the members of an object skips what is inside of them. Nothing is decoded until somebody asks.
//
// Start at Scan, then Value. The package knows nothing of schemas, and must not import anything of ours.
package rawjson
