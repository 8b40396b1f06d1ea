// Package bench measures a review against what it could cost at least: from the bytes of an
// AdmissionReview to the decision, with checks that are remembered, beside one pass of a JSON tokenizer
// over the same bytes, and structured-merge-diff.
//
// Read BenchmarkReview first, then reviews_test.go for what is reviewed, approaches_test.go for what is
// compared, and BenchmarkHostile for input that somebody made to be slow. The package has only tests.
// ratios prints what matters of the output:
//
//	go test -run '^$' -bench . ./test/bench | go run ./test/bench/ratios
package bench
