// Package minors compares what tests observe of an API server with what is recorded of the newest minor. For each older minor the difference is a file.
package minors

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
)

// Of returns the minor of a version: "1.32" of "v1.32.13", "" of a text that is none.
func Of(text string) string {
	v, err := version.ParseSemantic(text)
	if err != nil {
		return ""
	}
	return version.MajorMinor(v.Major(), v.Minor()).String()
}

// CheckDifference compares a difference with testdata/MINOR.diff in the working directory, the one that a reviewer has read. With rewrite it writes the file.
func CheckDifference(t *testing.T, minor, difference string, rewrite bool) {
	t.Helper()
	file := filepath.Join("testdata", minor+".diff")
	if rewrite {
		if err := os.WriteFile(file, []byte(difference), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	known, err := os.ReadFile(file) //nolint:gosec // A file of the test.
	if err != nil {
		t.Fatalf("the difference of %s is not recorded: run with -update, and read it: %v", minor, err)
	}
	if string(known) != difference {
		t.Errorf("%s is not the difference any more: run with -update, and read it:\n%s", file, difference)
	}
}
