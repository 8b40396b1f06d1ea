package cluster

import (
	"os"
	"strings"
)

// logTailLines is the number of lines of a log in an error.
const logTailLines = 20

// LogTail returns the last lines of a log, for the text of an error. If the log cannot be read, it returns the reason.
func LogTail(file string) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(lines[max(0, len(lines)-logTailLines):], "\n")
}
