// Package load decodes documents into schema.Documents: the built-in kinds and the catalogue of their permissions, the OpenAPI of a
// server, CustomResourceDefinitions, and files of an administrator.
//
// Read Offline first, then Decode. internal/sources reads a running server. Decoding is strict: a part of a document that is not
// understood is a fault, because a permission that is silently ignored looks like one that holds. Every fault is a *schema.Error that
// names its document and place. schema.Compile reports the faults that only a compile can find (an unknown path, CEL that does not
// compile).
//
// The package may import schema, schema/catalog, api/v1alpha1 and client-go's types; never fieldperm, admission or internal. It calls no
// server, writes no log, and caches nothing between calls.
package load
