// Package previous has the core as it was before it was rebuilt on demands, and compares its decisions with those of the core in force.
//
// The folders below it are copies of verbs, schema, fieldperm, admission and what these import, of the commit in [Frozen]. Nothing that
// ships imports them, and nothing in them is changed. The package goes when the rebuilt core is released.
//
// # The law
//
// A write that the core in force allows, the previous core allowed too. Both cores turn a write into demands: lists of verbs, any one of
// which is enough. Whatever a user holds, a write is allowed if every demand is met. So the law can be decided exactly, without drawing
// users: for each demand of the previous core there must be one of the core in force with no other verbs ([Compare]).
//
// # The table
//
// [Rows] has each class of differences with its reason, in both directions. A difference that no row describes fails the tests.
//
// # What is compared
//
// Pairs that test/exact draws, by Diff; the scenarios of testdata and requests that the storage oracle has recorded, by the review of a
// whole admission request ([World]).
package previous
