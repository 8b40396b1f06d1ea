// Package page renders a fieldtree.Forest as one HTML file that needs no network: data as JSON, a few hundred lines of JavaScript, and a
// style sheet. The file can be opened from a disk and passed on.
//
// Start at Render. The data of the page is in data.go: strings, verbs and nodes stand once in tables, and kinds and nodes refer to them by
// their index. static/model.js reads the data and works out chains, as fieldtree.Place.Chains does; static/view.js shows them.
//
// The data has room for a second part, who may change what in one object: a key "access" beside "kinds", with
//
//	{"kind": 3, "object": "shop/web", "subjects": [{"kind": "User", "name": "alice"}],
//	 "paths": {".spec.replicas": [[0, "granular"]], "": [[1, "generic"]]}}
//
// in which "kind" is an index into kinds, and each path has pairs of an index into subjects and how the subject may change it: generic,
// granular, wildcard or conditional. A path that is not listed has the pairs of the nearest listed path above it.
package page
