// Package sources is the one loader of permission schemas: built-in kinds, catalogue and files, then the API server's OpenAPI v3,
// its CustomResourceDefinitions, and the PermissionSchemas and UncoveredPermissionSets in it.
//
// It runs in two ways. A Live follows the API server while fieldperm-webhook runs; Objects is what follows the objects of
// fieldperm's own kinds. Once reads everything once by the same code, for commands, and returns what a Live that starts at that
// moment would have in force. Start at Live or Once; Live.compile is where the sources come together.
//
// A Live never serves less than it knew: what cannot be read, or no longer compiles, stays as it was last good, and Faults says
// so. Once has no such past. It returns an error where a Live might decide otherwise because of one.
//
// Decoding is schema/load's, compiling schema.Compile's; of admission it takes the names of documents only, and it never imports
// the server.
package sources
