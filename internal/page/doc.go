// Package page renders a fieldtree.Forest as one HTML file that needs no network: data as JSON, a few hundred lines of JavaScript, and a
// style sheet. The file can be opened from a disk and passed on.
//
// Start at Render. The data of the page is in data.go: strings, verbs and nodes stand once in tables, and kinds and nodes refer to them by
// their index. static/model.js reads the data and works out chains, as fieldtree.Place.Chains does; static/view.js shows them.
//
// RenderAccess adds who may change what in one object: a key "access" beside "kinds", with
//
//	{"kind": 3, "object": "shop/web", "subjects": [{"kind": "User", "name": "alice"}, {"kind": "Group", "name": "ops"}],
//	 "lists": [[[1, 0]], [[0, 1, 17], [1, 0]]], "paths": {"": 0, ".spec.replicas": 1}}
//
// in which "kind" is an index into kinds, and each path has a list of holders: the index of a subject, how it may change the field (0
// generic, 1 granular, 2 wildcard, 3 conditional), and the string that says more. A path without a list has that of the nearest path above
// it. static/access.js works out the rest.
//
// RenderTables makes the page of tables: the same frame and style, with the rows as HTML. static/table.js sorts and filters them.
package page
