//go:build !linux

package interlock

import (
	"os"
	"path/filepath"
)

// identity returns a value that changes when the file is renamed or replaced, because that changes its directory.
func identity(path string, _ os.FileInfo) string {
	info, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return err.Error()
	}
	return info.ModTime().String()
}
