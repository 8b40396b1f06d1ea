// Package ui serves the page of all kinds at GET /ui: the tree that "kubectl fieldperm explain --all -o html" writes, of the schema in force.
//
// Start at Handler. It renders a page on demand, once for each generation of the documents, and keeps it compressed; trees and the traced
// schema, which are much larger, are dropped. The caller comes only from the context: k8s.io/apiserver's request.UserFrom.
//
// The page discloses what GET /permissions discloses to every authenticated caller: kinds, fields and verbs; and types, and the conditions
// of barriers in permission schemas. UncoveredPermissionSets are objects that few users may read. The page shows that they make a barrier,
// and neither their names nor their conditions: see redact.
package ui
