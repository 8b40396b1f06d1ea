// Package model checks the enforcement proof (A5) as a protocol: a model of each topology, a search through every order of events, and for
// each rule of the protocol a variant without it, in which the search must find an over-grant. It has tests only. Start at README.md.
package model
