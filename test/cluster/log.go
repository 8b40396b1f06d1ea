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
	return tail(string(content))
}

func tail(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-logTailLines):], "\n")
}

// StacksOf returns what the Go runtime wrote to a log when the process got SIGQUIT, with the lines before it.
func StacksOf(file string) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	before, stacks, found := strings.Cut(string(content), "SIGQUIT: quit")
	if !found {
		return tail(before)
	}
	return tail(before) + "\nSIGQUIT: quit" + stacks
}
