// Package model checks the interlock (A5) as a protocol: a model of each topology, a search through every order of
// events, and for each rule of the protocol a variant that lacks it, in which the search must find an over-grant. It
// has tests only. Start at README.md.
package model
