package main

import (
	"regexp"
	"testing"
)

// TestFaults_ApplyToTheTree: each fault breaks a place that is there, and has a sign.
func TestFaults_ApplyToTheTree(t *testing.T) {
	list, err := read()
	if err != nil || len(list) == 0 {
		t.Fatalf("%d faults, %v", len(list), err)
	}
	for i := range list {
		f := &list[i]
		if _, err := f.overlay("../../..", t.TempDir()); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
		if _, err := regexp.Compile("(?s)" + f.Sign); err != nil || f.Sign == "" || len(f.Edits) == 0 || f.Writes == 0 {
			t.Errorf("%s: sign %q (%v), %d edits, %d writes", f.Name, f.Sign, err, len(f.Edits), f.Writes)
		}
	}
}
