package endpoint

import (
	_ "embed" // For written.yaml and charged.yaml.
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"sigs.k8s.io/yaml"
)

//go:embed written.yaml
var writtenYAML []byte

//go:embed charged.yaml
var chargedYAML []byte

// WriteObservation is the content of written.yaml: what the API server was seen to write by itself.
type WriteObservation struct {
	// APIServer is the version of the API server.
	APIServer string  `json:"apiServer"`
	Writes    []Write `json:"writes"`
}

// Write is a field of an object that the API server writes although the request does not name it. The zero Write says
// nothing of what it becomes, and is not predictable.
type Write struct {
	Kind     Kind     `json:"kind"`
	Versions []string `json:"versions"`
	// Field is a path as in permission schemas.
	Field string `json:"field"`
	// On is CREATE or UPDATE, as admission calls the request.
	On string `json:"on"`
	// With is the field that has to change in the request. Empty is none, where the object is new.
	With string `json:"with,omitempty"`
	// Is are the values that With has then, any if there are none.
	Is []json.RawMessage `json:"is,omitempty"`
	// From is what an UPDATE finds in the field, and Present that it finds anything; without both, it finds nothing.
	From    json.RawMessage `json:"from,omitempty"`
	Present bool            `json:"present,omitempty"`
	// Becomes is the value that the field gets. Removed, Counts and Copies stand in its place.
	Becomes json.RawMessage `json:"becomes,omitempty"`
	// Removed is that the field disappears.
	Removed bool `json:"removed,omitempty"`
	// Counts is that the number in the field grows by one.
	Counts bool `json:"counts,omitempty"`
	// Copies is the field whose value it gets.
	Copies string `json:"copies,omitempty"`
	// Varies is that it was another value each time.
	Varies bool `json:"varies,omitempty"`
	// DependsOn are the fields on which it depends, where no single one explains it.
	DependsOn []string `json:"dependsOn,omitempty"`
	// Settings is that an API server without alpha and beta features, and without the admission plugins that change
	// objects, was not seen to write it.
	Settings bool `json:"settings,omitempty"`
}

// Predictable reports whether the write says exactly what the field becomes, whatever the API server's settings are.
func (w *Write) Predictable() bool {
	says := 0
	for _, said := range []bool{w.Becomes != nil, w.Removed, w.Counts, w.Copies != ""} {
		if said {
			says++
		}
	}
	caused := w.On == create || w.On == update && w.With != ""
	return says == 1 && caused && !w.Varies && !w.Settings && len(w.DependsOn) == 0
}

// Charged is a decision, made by hand, that what a field becomes is charged even if it was predictable in a run. That the field
// disappears stays free: there is no value in it to choose.
type Charged struct {
	Kind  Kind   `json:"kind"`
	Field string `json:"field"`
	// Reason says why, as docs/reference/fields.md does.
	Reason string `json:"reason"`
}

func (c *Charged) of(w *Write) bool { return c.Kind == w.Kind && c.Field == w.Field && !w.Removed }

type writes struct {
	WriteObservation
	charged []Charged
}

// written is what is compiled in. The files are checked by a test: they decode.
var written = sync.OnceValue(func() *writes {
	out, err := decodeWrites(writtenYAML, chargedYAML)
	if err != nil {
		panic(fmt.Sprintf("schema/endpoint: %v", err))
	}
	return out
})

func decodeWrites(observed, decided []byte) (*writes, error) {
	out := &writes{}
	if err := yaml.UnmarshalStrict(observed, &out.WriteObservation); err != nil {
		return nil, fmt.Errorf("written.yaml: %w", err)
	}
	if err := yaml.UnmarshalStrict(decided, &out.charged); err != nil {
		return nil, fmt.Errorf("charged.yaml: %w", err)
	}
	for i := range out.Writes {
		w := &out.Writes[i]
		switch {
		case w.Kind.Kind == "" || w.Field == "" || len(w.Versions) == 0:
			return nil, fmt.Errorf("written.yaml: write %d: has no kind, field or versions", i)
		case w.On != create && w.On != update:
			return nil, fmt.Errorf("written.yaml: %s %s: on %q: is neither %s nor %s", w.Kind, w.Field, w.On, create, update)
		case w.On == create && (w.Present || w.From != nil || w.Removed || w.Counts):
			return nil, fmt.Errorf("written.yaml: %s %s: a new object had nothing before", w.Kind, w.Field)
		}
	}
	for i := range out.charged {
		c := &out.charged[i]
		if c.Reason == "" {
			return nil, fmt.Errorf("charged.yaml: %s %s: has no reason", c.Kind, c.Field)
		}
		if !slices.ContainsFunc(out.Writes, func(w Write) bool { return c.of(&w) }) {
			return nil, fmt.Errorf("charged.yaml: %s %s: is about no write of written.yaml: take it out", c.Kind, c.Field)
		}
	}
	return out, nil
}

// Writes returns what the API server was seen to write by itself.
func Writes() []Write { return slices.Clone(written().Writes) }

// FreeWrites returns the writes that cost nobody a verb (D13): those that are predictable, without what is charged by
// decision, and without those of which one is the cause of the other.
func FreeWrites() []Write {
	known := written()
	return freed(slices.DeleteFunc(Writes(), func(w Write) bool {
		return !w.Predictable() || slices.ContainsFunc(known.charged, func(c Charged) bool { return c.of(&w) })
	}))
}

// freed leaves out the writes whose cause may be free because of them. Two fields that the API server copies into each other would
// free each other, and nobody would be charged for either.
func freed(writes []Write) []Write {
	causes := func(of Kind, field string) []string {
		var out []string
		for i := range writes {
			if w := &writes[i]; w.Kind == of && w.With != "" && overlap(w.Field, field) {
				out = append(out, w.With)
			}
		}
		return out
	}
	free := make([]Write, 0, len(writes))
	for _, w := range writes {
		cause := w.With != ""
		for seen, next := map[string]bool{}, []string{w.With}; cause && len(next) > 0; next = next[1:] {
			if overlap(next[0], w.Field) {
				cause = false
			}
			if !seen[next[0]] {
				seen[next[0]] = true
				next = append(next, causes(w.Kind, next[0])...)
			}
		}
		if cause || w.With == "" {
			free = append(free, w)
		}
	}
	return free
}

// ChargedWrites returns the decisions.
func ChargedWrites() []Charged { return slices.Clone(written().charged) }

// ParseWrites reads a written WriteObservation, for tests and the recorder.
func ParseWrites(content []byte) (*WriteObservation, error) {
	w, err := decodeWrites(content, nil)
	if err != nil {
		return nil, err
	}
	return &w.WriteObservation, nil
}
