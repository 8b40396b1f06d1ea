package cluster

import (
	"os"
	"strings"
)

// logTailLines is how much of a log an error shows.
const logTailLines = 20

// LogTail returns the last lines of a log, for an error's text. If it cannot be read, that is what it says.
func LogTail(file string) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(lines[max(0, len(lines)-logTailLines):], "\n")
}
