package oracle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// recorder writes what test/previous replays: for each epoch N a file N.yaml with the documents in force and a file N.json with the reviews
// that kube-apiserver sent, one on each line. A nil recorder writes nothing.
type recorder struct {
	dir string

	mu      sync.Mutex
	reviews *os.File
	err     error
}

// begin ends the files of the last epoch, and begins those of the next one.
func (r *recorder) begin(epoch int, documents []any) error {
	if r == nil {
		return nil
	}
	var text bytes.Buffer
	for _, d := range documents {
		raw, err := json.Marshal(d)
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "---\n%s\n", raw)
	}
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.dir, fmt.Sprintf("%d.yaml", epoch)), text.Bytes(), 0o600); err != nil {
		return err
	}
	next, err := os.Create(filepath.Join(r.dir, fmt.Sprintf("%d.json", epoch)))
	if err != nil {
		return err
	}
	return r.change(next)
}

// end closes the files. The error is the first one of all.
func (r *recorder) end() error {
	if r == nil {
		return nil
	}
	return r.change(nil)
}

func (r *recorder) change(next *os.File) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reviews != nil {
		r.err = errors.Join(r.err, r.reviews.Close())
	}
	r.reviews = next
	return r.err
}

// enter records a review. Others than of granular say nothing new.
func (r *recorder) enter(path string, question []byte) {
	if r == nil || !strings.HasPrefix(path, "/admit/granular") {
		return
	}
	var line bytes.Buffer
	if json.Compact(&line, question) != nil {
		return // It is no JSON, which the ledger reports.
	}
	line.WriteByte('\n')
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reviews != nil && r.err == nil {
		_, r.err = r.reviews.Write(line.Bytes())
	}
}

// inForceNow are the definitions, schemas and sets of the epoch.
func (w *world) inForceNow() []any {
	var out []any
	for _, c := range w.definitions {
		out = append(out, c.object)
	}
	if w.inForce != nil {
		for _, one := range w.inForce.schemas {
			out = append(out, one)
		}
		for _, one := range w.inForce.sets {
			out = append(out, one.object)
		}
	}
	return out
}
