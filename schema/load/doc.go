// Package load decodes documents into compile.Documents: the built-in kinds and the catalogue of their permissions, the OpenAPI of a
// server, CustomResourceDefinitions, and files of an administrator.
//
// Offline reads and compiles all that needs no server. internal/sources reads a running server. Decoding is strict: a part of a document that is not
// understood is a fault, because a permission that is silently ignored looks like one that holds. Every fault is a *schema.Error that
// names its document and place. compile.Compile reports the faults that only a compile can find (an unknown path, CEL that does not
// compile).
//
// The package never imports fieldperm or admission. It calls no server, writes no log, and caches nothing between calls.
package load
