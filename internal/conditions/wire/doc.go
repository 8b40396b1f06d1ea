// Package wire writes and reads decisions with conditions in SubjectAccessReviews. KEP-5681 has had three texts, and programs speak each of
// them: the package has one file for the dialect of each. A dialect is configured for each peer. It is never guessed.
//
// A peer of another dialect, or of none, never gets an Allow out of a conditional decision. Status folds the decision, and ReadStatus returns
// an error.
//
// Start at Dialect. The package does not send, log or evaluate. The Condition that ReadStatus returns has no function: the program that
// made it evaluates it, or a program that knows its type.
package wire
