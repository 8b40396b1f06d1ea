// Package e2e holds the tests of the whole system that are not scenarios of testdata: the catalogue against a real server, the rules of the
// webhooks, the interplay of API server and fieldperm, bad input. They have the build tag integration; package stack starts the control
// plane for them.
//
// It also has Build, for every test that needs the real binaries.
package e2e
