package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed later.yaml
var laterFile []byte

// later is a test that make test leaves to make test-all.
type later struct {
	// Package is the path of the package below the module, and Tests are tests of it.
	Package string   `yaml:"package"`
	Tests   []string `yaml:"tests"`
	// Reason says why make test can do without them: what else shows their rule there.
	Reason string `yaml:"reason"`
}

func readLater() ([]later, error) {
	var rows []later
	decoder := yaml.NewDecoder(bytes.NewReader(laterFile))
	decoder.KnownFields(true)
	if err := decoder.Decode(&rows); err != nil {
		return nil, fmt.Errorf("test/suite/later.yaml: %w", err)
	}
	return rows, nil
}

// names returns the pattern of -run or -skip for tests, and "^$" for none.
func names(tests []string) string {
	if len(tests) == 0 {
		return "^$"
	}
	return "^(" + strings.Join(tests, "|") + ")$"
}
