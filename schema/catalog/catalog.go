package catalog

import (
	"embed"
	"io/fs"
)

//go:embed *.yaml
var files embed.FS

// Files returns the catalogue, flat: every file is a YAML document of the format in README.md.
// Fragments are known by name across files, so decode all files before expanding any.
func Files() fs.FS { return files }
