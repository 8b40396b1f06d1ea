// Package bench compares the cost of a review with its lower limit. A review runs from the bytes of an AdmissionReview to the decision,
// with cached checks. It is compared with one pass of a JSON tokenizer over the same bytes, and with structured-merge-diff.
//
// Read BenchmarkReview first, then reviews_test.go for the reviews, approaches_test.go for the approaches, and BenchmarkHostile for input
// that an attacker made to be slow. The package has only tests. ratios prints the important figures of the output:
//
//	go test -run '^$' -bench . ./test/bench | go run ./test/bench/ratios
package bench
