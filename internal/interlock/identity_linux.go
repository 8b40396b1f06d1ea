package interlock

import (
	"fmt"
	"os"
	"syscall"
)

// identity is another whenever a file was written, renamed or replaced since, whatever times it was given.
func identity(_ string, info os.FileInfo) string {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprint(s.Dev, s.Ino, s.Ctim.Sec, s.Ctim.Nsec)
	}
	return "unknown"
}
