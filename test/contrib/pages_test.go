package contrib

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/schema/load"
)

var (
	granular = regexp.MustCompile(`granular:([A-Za-z0-9./-]+)(\([^)]*\))?`)
	fence    = regexp.MustCompile("(?ms)^```yaml\n(apiVersion: .*?)^```$")
)

// TestContrib_PagesNameVerbsThatExist: a Role that a reader copies from README.md or from the guide grants something, and the PermissionSchemas of
// README.md decode.
func TestContrib_PagesNameVerbsThatExist(t *testing.T) {
	known := map[string]bool{}
	catalogue, err := load.Catalogue(true)
	must(t, err)
	for _, d := range catalogue {
		for _, e := range d.Entries {
			known[e.Verb] = true
			known[e.Verb+"()"] = known[e.Verb+"()"] || e.ParameterizedBy != ""
		}
	}
	for _, p := range readProjects(t) {
		for _, e := range p.entries(t) {
			known[e.Verb] = true
			known[e.Verb+"()"] = known[e.Verb+"()"] || e.ParameterizedBy != ""
		}
	}
	for _, page := range []string{filepath.Join(directory, "README.md"), "../../docs/guide/contrib.md"} {
		raw, err := os.ReadFile(page)
		must(t, err)
		seen := granular.FindAllStringSubmatch(string(raw), -1)
		if len(seen) < 10 {
			t.Errorf("%s: names %d verbs only: the test does not see them", page, len(seen))
		}
		for _, match := range seen {
			verb := match[1]
			if match[2] != "" {
				verb += "()"
			}
			if !known[verb] {
				t.Errorf("%s: verb %q guards nothing", page, match[0])
			}
		}
		for _, match := range fence.FindAllStringSubmatch(string(raw), -1) {
			_, errs := load.Decode(page, []byte(match[1]))
			must(t, errors.Join(errs...))
		}
	}
}

// TestContrib_TableHasEveryProject: README.md has a row for each catalogue, with the versions of modules.yaml.
func TestContrib_TableHasEveryProject(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(directory, "README.md"))
	must(t, err)
	files, err := filepath.Glob(filepath.Join(directory, "*.yaml"))
	must(t, err)
	projects := readProjects(t)
	if len(files) != len(projects) {
		t.Errorf("there are %d files and %d projects in modules.yaml", len(files), len(projects))
	}
	for _, p := range projects {
		_, row, found := strings.Cut(string(raw), "\n| "+p.Name+" | ["+p.File+"]("+p.File+") |")
		row, _, _ = strings.Cut(row, "\n")
		if !found {
			t.Errorf("README.md has no row for %s", p.Name)
		}
		for _, m := range p.Modules {
			for _, v := range m.Versions {
				if !strings.Contains(row, v.Version) {
					t.Errorf("README.md: the row of %s does not name %s %s", p.Name, m.Path, v.Version)
				}
			}
		}
	}
}

// TestContrib_TriedRolesAreTried: README.md says of a Role that it was tried if and only if testdata/usecases.yaml has a user with its verbs.
func TestContrib_TriedRolesAreTried(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(directory, "README.md"))
	must(t, err)
	raw, err := os.ReadFile("testdata/usecases.yaml")
	must(t, err)
	var file struct {
		Objects map[string]struct{ Resource, Group string }
		Users   []struct {
			Object string
			Verbs  []string
		}
	}
	must(t, yaml.Unmarshal(raw, &file))
	tried := map[string]bool{}
	for _, u := range file.Users {
		o := file.Objects[u.Object]
		tried[fmt.Sprintf("`%s` of `%s` | `%s`", o.Resource, o.Group, strings.Join(u.Verbs, "`, `"))] = true
	}
	rows := 0
	for _, row := range strings.Split(string(page), "\n") {
		cells := strings.Split(row, " | ")
		if len(cells) < 4 || !strings.HasPrefix(cells[2], "`granular`, ") {
			continue
		}
		rows++
		rule := cells[1] + " | " + cells[2]
		if says := strings.HasSuffix(row, "| tried |"); says != tried[rule] {
			t.Errorf("README.md: %s: says tried %t, testdata/usecases.yaml has it %t", rule, says, tried[rule])
		}
		delete(tried, rule)
	}
	if rows < 20 || len(tried) > 0 {
		t.Errorf("README.md: %d rows were seen, and there is none for %v", rows, tried)
	}
}
