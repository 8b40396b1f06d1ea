package contrib

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/schema/catalog/contrib"
)

// directory has the catalogues, for kubectl, and README.md.
const directory = "../../schema/catalog/contrib"

var large = flag.Bool("large", false, "also compile with the versions that modules.yaml marks as large downloads")

// project is one catalogue and where its definitions come from.
type project struct {
	File   string `json:"file"`
	Name   string `json:"name"`
	Domain string `json:"domain"`
	// Variants are the sets of definitions of a project that has several; the name is empty if there is one.
	Variants []string `json:"variants"`
	Modules  []module `json:"modules"`
	// LeftOut are kinds without a PermissionSchema, and why.
	LeftOut map[string]string `json:"leftOut"`
	// ByHand are kinds whose definitions are in no module that the proxy serves, and what they were compared with.
	ByHand map[string]string `json:"byHand"`
}

// module is a Go module with definitions. The first version is the one that was reviewed.
type module struct {
	Path string `json:"path"`
	// Definitions are patterns of files. VARIANT stands for the variant.
	Definitions []string  `json:"definitions"`
	Versions    []version `json:"versions"`
}

type version struct {
	Version string `json:"version"`
	// Sum is the checksum of the module's zip, as in go.sum.
	Sum   string `json:"sum"`
	Large bool   `json:"large"`
}

func readProjects(t *testing.T) []project {
	t.Helper()
	raw, err := os.ReadFile("modules.yaml")
	must(t, err)
	var file struct {
		Projects []project `json:"projects"`
	}
	must(t, yaml.UnmarshalStrict(raw, &file))
	for i := range file.Projects {
		if p := &file.Projects[i]; len(p.Variants) == 0 {
			p.Variants = []string{""}
		}
	}
	return file.Projects
}

// read returns the catalogue.
func (p *project) read(t *testing.T) []byte {
	t.Helper()
	raw, err := fs.ReadFile(contrib.Files(), p.File)
	must(t, err)
	return raw
}

// rounds returns the number of versions to compile with. A module with fewer versions stays at its last one.
func (p *project) rounds() int {
	rounds := 0
	for _, m := range p.Modules {
		rounds = max(rounds, len(m.Versions))
	}
	return rounds
}

// at returns the version of a module in a round.
func (m *module) at(round int) version { return m.Versions[min(round, len(m.Versions)-1)] }

// skipped reports whether a round needs a large download that was not asked for.
func (p *project) skipped(round int) bool {
	return !*large && slices.ContainsFunc(p.Modules, func(m module) bool { return m.at(round).Large })
}

// definition is a file with CustomResourceDefinitions.
type definition struct {
	name string
	raw  []byte
}

// definitions returns the project's CustomResourceDefinitions.
func (p *project) definitions(t *testing.T, round int, variant string) []definition {
	t.Helper()
	var out []definition
	for i := range p.Modules {
		out = append(out, p.Modules[i].read(t, round, variant)...)
	}
	return out
}

// read returns the definitions of a version of the module.
func (m *module) read(t *testing.T, round int, variant string) []definition {
	t.Helper()
	v := m.at(round)
	archive, err := zip.OpenReader(m.download(t, v))
	must(t, err)
	defer func() { must(t, archive.Close()) }()
	var out []definition
	for _, file := range archive.File {
		name := strings.TrimPrefix(file.Name, m.Path+"@"+v.Version+"/")
		if !slices.ContainsFunc(m.Definitions, func(pattern string) bool {
			matches, err := path.Match(strings.ReplaceAll(pattern, "VARIANT", variant), name)
			must(t, err)
			return matches
		}) {
			continue
		}
		content, err := file.Open()
		must(t, err)
		raw, err := io.ReadAll(content)
		must(t, err)
		must(t, content.Close())
		out = append(out, definition{name: file.Name, raw: raw})
	}
	if len(out) == 0 {
		t.Fatalf("%s %s: no file matches %q: correct modules.yaml", m.Path, v.Version, m.Definitions)
	}
	return out
}

// downloaded are the zips that this run has verified, by module and version.
var downloaded sync.Map

// download returns the zip of the module in the module cache. It fails if the module is not the one that was reviewed.
func (m *module) download(t *testing.T, v version) string {
	t.Helper()
	if archive, ok := downloaded.Load(m.Path + "@" + v.Version); ok {
		return archive.(string)
	}
	command := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", m.Path+"@"+v.Version)
	// Outside of any module and workspace, without flags that are for builds, and without the download of a toolchain.
	command.Dir = t.TempDir()
	command.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOTOOLCHAIN=local")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	// If the module is for a newer Go, the command fails after it has downloaded and verified the zip.
	raw, failed := command.Output()
	var answer struct{ Zip, Sum, Error string }
	if err := json.Unmarshal(raw, &answer); err != nil || answer.Zip == "" {
		t.Fatalf("%s %s cannot be downloaded: %v: %s%s", m.Path, v.Version, errors.Join(failed, err), answer.Error, stderr.String())
	}
	if answer.Sum != v.Sum {
		t.Fatalf("%s %s has the checksum %q, want %q: it is not the module that was reviewed", m.Path, v.Version, answer.Sum, v.Sum)
	}
	downloaded.Store(m.Path+"@"+v.Version, answer.Zip)
	return answer.Zip
}

// title names a compile in the output of the test.
func (p *project) title(round int, variant string) string {
	return strings.TrimSuffix(fmt.Sprintf("%s/%s/%s", strings.TrimSuffix(p.File, ".yaml"), p.Modules[0].at(round).Version, variant), "/")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// header returns the comment at the top of the catalogue.
func (p *project) header(t *testing.T) string {
	t.Helper()
	header, _, found := strings.Cut(string(p.read(t)), "\n---\n")
	if !found {
		t.Fatalf("%s: has no comment at the top", p.File)
	}
	return header
}
