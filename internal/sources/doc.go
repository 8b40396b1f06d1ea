// Package sources keeps the permission schema current: built-in kinds, catalogue and files, read once
// at start, then the API server's OpenAPI v3, its CustomResourceDefinitions, and the PermissionSchemas
// and UncoveredPermissionSets in it, followed while it runs.
//
// Start at Live; Objects is what follows the objects of fieldperm's own kinds. Live never serves less
// than it knew: what cannot be read, or no longer compiles, stays as it was last good, and Faults says
// so. Decoding is schema/load's, compiling schema.Compile's; of admission it takes the names of
// documents only, and it never imports the server.
package sources
