// Package e2e holds the tests of the whole system that are no scenarios of testdata: the catalogue against a
// real server, the webhooks' rules, the interplay of API server and fieldperm, bad input. They have the build tag
// integration; package stack starts what they run against.
//
// Besides, it has Build, for every test that needs the real binaries.
package e2e
