// Package load decodes documents into schema.Documents: the built-in kinds and the catalogue of their
// permissions, the OpenAPI of a server, CustomResourceDefinitions, and files of an administrator.
//
// Read Offline first, then Decode. internal/sources reads a running server. Decoding is strict: what a
// document says and nobody reads is a fault, because a permission that is silently ignored looks
// like one that holds. Every fault is a *schema.Error that names its document and place. What only
// a compile can know (an unknown path, CEL that does not compile) schema.Compile reports.
//
// The package may import schema, schema/catalog, api/v1alpha1 and client-go's types; never fieldperm,
// admission or internal. Nothing in it calls a server or logs, and nothing is cached between calls.
package load
