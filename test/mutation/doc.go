// Command mutation tests the tests: it breaks the code in one small way at a time, and a unit test must fail each time.
//
// Start at main, then mutations.yaml, which is the list. A mutation is an edit of one declaration (package edit) and the
// packages whose tests must fail under it. The command never changes the tree itself: it tests a copy, in which go test
// reads the changed file in place of the original (-overlay). A mutation names single tests where all tests of a
// package take long.
//
//	go run ./test/mutation                              # all
//	go run ./test/mutation -run 'D8|A4'                 # those whose rule or name matches
//	go run ./test/mutation -write mutations.md          # all, and their table into a file
//
// The command imports nothing of the module but package edit.
package main
