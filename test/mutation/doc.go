// Command mutation holds the tests to their promise: it breaks the code in one small way at a time,
// and some unit test has to notice.
//
// Start at main, then mutations.yaml, which is the list. A mutation is an exact text of one file, what
// stands in its place, and the packages whose tests must fail then. The tree itself is never
// touched: a copy of it is tested, where go test reads the changed file in place of the right one
// (-overlay). Where all tests of a package would take long, a mutation names those that are to notice.
//
//	go run ./test/mutation                              # all
//	go run ./test/mutation -run 'D8|A4'                 # those whose rule or name matches
//	go run ./test/mutation -write mutations.md          # all, and their table into a file
//
// The command imports nothing of the module.
package main
