// Package sources is the only loader of permission schemas: built-in kinds, catalogue and files, then the API server's OpenAPI v3,
// its CustomResourceDefinitions, PermissionSchemas and UncoveredPermissionSets.
//
// It runs in two ways. A Live follows the API server while fieldperm-webhook runs; Objects follows the objects of fieldperm's own
// kinds. Once reads everything once with the same code, for commands. It returns the schema that a Live would have in force if it
// started at that time. Start at Live or Once; Live.compile combines the sources.
//
// A Live keeps every valid source: if a source cannot be read or no longer compiles, its last valid form stays in force, and
// Faults reports it. Once has no earlier form. It returns an error if a Live might decide otherwise because of an earlier form.
//
// schema/load decodes, schema/compile compiles. Of admission the package uses only the names of documents. It never imports the
// server.
package sources
