// Package fieldpath has the paths of fields. A Path is a place in one object. A Pattern is a place in a schema, which stands for many
// paths. Pointer and Extend write the two other texts of a place: JSON pointers, and patterns that grow step by step.
//
// Start at Path and ParsePattern. The package imports internal/rawjson, for the values of keys, and nothing else of fieldperm. The paths
// of managedFields are those of sigs.k8s.io/structured-merge-diff, which files import as smdpath.
package fieldpath
