package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"
)

// timesFile has how long the tests took on this machine.
const timesFile = "bin/test-times.json"

// times is how long a run of make test or make test-all took.
type times struct {
	When    time.Time
	Seconds float64
	// Packages are seconds by the path of the package.
	Packages map[string]float64
}

// readTimes returns the last run of a name; the zero value if there was none.
func readTimes(file, name string) (times, error) {
	all, err := readAllTimes(file)
	return all[name], err
}

func readAllTimes(file string) (map[string]times, error) {
	all := map[string]times{}
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		// An older form, or half of a file: it is only a help.
		return map[string]times{}, nil //nolint:nilerr // See above.
	}
	return all, nil
}

// write replaces the run of a name.
func (t times) write(file, name string) error {
	all, err := readAllTimes(file)
	if err != nil {
		return err
	}
	all[name] = t
	raw, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, raw, 0o644) //nolint:gosec // It has no secret.
}

// usuallyLong are packages that take longest, for a machine that has no times yet.
var usuallyLong = []string{"./test/faults", "./test/e2e", "./test/corpus", "./internal/plugin", "./test/fields", "./test/asks", "./test/aggregated", "./test/oracle", "./test/exact", "./schema/load"}

// longestFirst sorts packages so that none of the long ones runs alone at the end.
func (t times) longestFirst(packages []string) []string {
	seconds := maps.Clone(t.Packages)
	if len(seconds) == 0 {
		seconds = map[string]float64{}
		for i, path := range usuallyLong {
			seconds[path] = float64(len(usuallyLong) - i)
		}
	}
	return slices.SortedStableFunc(slices.Values(packages), func(a, b string) int { return cmp.Compare(seconds[b], seconds[a]) })
}
