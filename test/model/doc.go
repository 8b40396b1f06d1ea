// Package model checks the interlock (A5) as a protocol: Promela models of both topologies, and for each rule of the
// protocol a variant that lacks it, in which spin must find an over-grant. It has tests only, with the build
// tag model, and needs spin and a C compiler. Start at README.md.
package model
