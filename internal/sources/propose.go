package sources

import (
	"encoding/json"
	"errors"
	"os"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/fieldperm/fieldperm/internal/manifest"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/load"
)

// proposal is the documents of files that replace documents of an API server.
type proposal struct {
	documents compile.Documents
	// sources are the names of the documents in errors. named are the objects that the documents define.
	sources map[string]bool
	named   map[objectKey]bool
}

// propose reads files or directories. Any fault is an error.
func propose(files []string) (proposal, error) {
	documents, errs := load.Files(files)
	if len(errs) > 0 {
		return proposal{}, utilerrors.NewAggregate(errs)
	}
	p := proposal{documents: documents, sources: map[string]bool{}, named: map[objectKey]bool{}}
	for i := range documents.Topologies {
		p.sources[documents.Topologies[i].Source] = true
	}
	for i := range documents.Permissions {
		p.sources[documents.Permissions[i].Source] = true
	}
	for i := range documents.Uncovered {
		p.sources[documents.Uncovered[i].Source] = true
	}
	for _, file := range files {
		names, err := load.Paths(file)
		if err != nil {
			return proposal{}, err
		}
		for _, name := range names {
			raw, err := os.ReadFile(name)
			if err != nil {
				return proposal{}, err
			}
			parts, err := manifest.Documents(raw)
			if err != nil {
				return proposal{}, err
			}
			for _, part := range parts {
				p.name(part)
			}
		}
	}
	return p, nil
}

// name records the name of an object, or the names of the items of a list.
func (p proposal) name(document json.RawMessage) {
	var object struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Items []json.RawMessage `json:"items"`
	}
	if json.Unmarshal(document, &object) != nil {
		return // decoding above would have failed
	}
	if object.Metadata.Name != "" {
		p.named[objectKey{object.Kind, object.Metadata.Name}] = true
	}
	for _, item := range object.Items {
		p.name(item)
	}
}

// beside lists objects without those that the proposal replaces.
func beside[T interface {
	GetKind() string
	GetName() string
}](p proposal, list func() ([]T, error)) ([]T, error) {
	objects, err := list()
	var out []T
	for _, o := range objects {
		if !p.named[objectKey{o.GetKind(), o.GetName()}] {
			out = append(out, o)
		}
	}
	return out, err
}

// isOf reports whether a fault is in the proposal.
func (p proposal) isOf(fault error) bool {
	var e *schema.Error
	return errors.As(fault, &e) && p.sources[e.Source]
}
