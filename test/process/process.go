// Package process reads what Linux knows of a process that a test has started: the processor time that it took, and its memory.
package process

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// These are names of sizes in Linux's status of a process.
const (
	// Resident is the resident set, Highest the largest resident set so far.
	Resident = "VmRSS:"
	Highest  = "VmHWM:"
	// Anonymous is the part of the resident set that no file has.
	Anonymous = "RssAnon:"
)

// ID returns the number of a process that a directory of test/stack or test/cluster names.
func ID(dir, name string) (int, error) {
	content, err := os.ReadFile(filepath.Join(dir, "pids", name))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(content)))
}

// Memory returns one of the sizes, in bytes.
func Memory(pid int, of string) (int64, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(content))
	at := slices.Index(fields, of)
	if at < 0 || at+1 >= len(fields) {
		return 0, fmt.Errorf("process %d has no %s", pid, of)
	}
	kilobytes, err := strconv.ParseInt(fields[at+1], 10, 64)
	return kilobytes << 10, err
}

// ProcessorTime returns the processor time so far, user and system, to a hundredth of a second.
func ProcessorTime(pid int) (time.Duration, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name of the program, in parentheses, may have spaces: count from after it.
	fields := strings.Fields(string(content[bytes.LastIndexByte(content, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("process %d: its state is cut off", pid)
	}
	var ticks int64
	for _, field := range fields[11:13] {
		one, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += one
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

// Files returns the number of open files: sockets and pipes too.
func Files(pid int) (int64, error) { return entries(pid, "fd") }

// Threads returns the number of threads.
func Threads(pid int) (int64, error) { return entries(pid, "task") }

func entries(pid int, of string) (int64, error) {
	found, err := os.ReadDir(fmt.Sprintf("/proc/%d/%s", pid, of))
	return int64(len(found)), err
}
