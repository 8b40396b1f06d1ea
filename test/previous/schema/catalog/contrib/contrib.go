package contrib

import (
	"embed"
	"io/fs"
)

//go:embed *.yaml
var files embed.FS

// Files returns the catalogues: one file per project, with PermissionSchemas.
func Files() fs.FS { return files }
