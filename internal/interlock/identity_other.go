//go:build !linux

package interlock

import (
	"os"
	"path/filepath"
)

// identity is another whenever a file was renamed or replaced since, because its directory was written then.
func identity(path string, _ os.FileInfo) string {
	info, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return err.Error()
	}
	return info.ModTime().String()
}
