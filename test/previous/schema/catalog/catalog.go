package catalog

import (
	"embed"
	"io/fs"
)

//go:embed *.yaml
var files embed.FS

// Files returns the catalogue as a flat file system. Every file is a YAML document in the format of README.md. A file may use fragments
// of other files by name, so decode all files before you expand any.
func Files() fs.FS { return files }
