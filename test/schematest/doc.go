// Package schematest has what tests need to have a compiled schema: the built-in kinds with their catalogue, documents of a test beside
// them, and short forms of these documents.
//
//	s := schematest.Schema(t)                            // the kinds of Kubernetes
//	s := schematest.Schema(t, definition, barriers)      // and documents in YAML
//	s := schematest.Traced(t, definition)                // with origins, as commands compile
//	docs := schematest.Documents(t, definition)          // the documents, to change them or to expect faults of schemacheck.Compile
//	docs = schematest.Only(docs, "Deployment", "Scale")  // some of the built-in kinds, which compile in a tenth of the time
//
// Kind compiles one kind from types of structured-merge-diff alone.
//
// Definition, UncoveredSet and PermissionSchema write the documents. A test that is about the form of a document writes it in full.
//
// A compile of all built-in kinds takes most of the time of many tests. Schema and Traced therefore compile the same texts once per
// process and return the same schema to all tests. A Schema does not change, so tests may share it, also in parallel. It stays in memory,
// about 2 MiB each. A table of documents that occur once therefore calls Compile, which compiles each time, as does a test of the compile
// itself: that it is deterministic, how long it takes.
//
// The package imports schema, schema/compile and schema/load, so the tests inside these packages cannot import it.
package schematest
