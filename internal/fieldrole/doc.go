// Package fieldrole finds the least role for a set of fields of a kind, whatever their values are, and for one change of an object. It says
// which verb covers which field, and what the role allows besides.
//
// Start at New and Kinds.Find, which give a Target: a kind with its resource. Target.Fields makes the rules for fields, and Kinds.Change
// those for two states of an object. Rule.Comments and Manifest render them. For fields, package anyvalue judges the role; for a change,
// package needs decides on it. The package reads no file and no cluster.
package fieldrole
