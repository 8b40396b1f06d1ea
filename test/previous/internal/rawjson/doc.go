// Package rawjson reads JSON in place. Scan looks at each byte of a text once, refuses a text that is not JSON, and stores where
// every object and list ends. A Value is then a position in the text, and iterating over the members of an object skips their
// contents. Nothing is decoded until it is needed.
//
// Start at Scan, then read Value. The package knows nothing of schemas, and must not import any other package of fieldperm.
package rawjson
