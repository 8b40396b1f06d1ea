package interlock

import (
	"fmt"
	"os"
	"syscall"
)

// identity returns a value that changes when the file is written, renamed or replaced, even if its modification time is set back.
func identity(_ string, info os.FileInfo) string {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprint(s.Dev, s.Ino, s.Ctim.Sec, s.Ctim.Nsec)
	}
	return "unknown"
}
