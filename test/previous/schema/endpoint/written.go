package endpoint

import (
	_ "embed" // The import embeds written.yaml and charged.yaml.
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

// WriteObservation is the content of written.yaml: the observed writes of the API server itself.
type WriteObservation struct {
	// APIServer is the version of the API server.
	APIServer string  `json:"apiServer"`
	Writes    []Write `json:"writes"`
}

// Write is a field of an object that the API server writes although the request does not name it. The zero Write is not predictable.
type Write struct {
	Kind     Kind     `json:"kind"`
	Versions []string `json:"versions"`
	// Field is a path in the form of permission schemas.
	Field string `json:"field"`
	// On is the admission operation of the request, CREATE or UPDATE.
	On string `json:"on"`
	// With is the field whose change in the request causes the write. It is empty if the cause is that the object is new.
	With string `json:"with,omitempty"`
	// Is are the values that With must have; empty means any value.
	Is []json.RawMessage `json:"is,omitempty"`
	// Without is a field that the object does not have. It is for new objects only.
	Without string `json:"without,omitempty"`
	// From is the old value of the field in an UPDATE. Present means that it has some value. Without both, it has none.
	From    json.RawMessage `json:"from,omitempty"`
	Present bool            `json:"present,omitempty"`
	// Becomes is the value that the field gets. Removed, Counts and Copies are alternatives to it.
	Becomes json.RawMessage `json:"becomes,omitempty"`
	// Removed means that the field disappears.
	Removed bool `json:"removed,omitempty"`
	// Counts means that the number in the field grows by one.
	Counts bool `json:"counts,omitempty"`
	// Copies is the field whose value this field gets.
	Copies string `json:"copies,omitempty"`
	// Varies means that the value was different each time.
	Varies bool `json:"varies,omitempty"`
	// DependsOn are the fields that influence the value, if no single field explains it.
	DependsOn []string `json:"dependsOn,omitempty"`
	// Settings means that the write was not observed on an API server without alpha and beta features and without the admission plugins
	// that change objects.
	Settings bool `json:"settings,omitempty"`
}

// Predictable reports whether the write determines the new value of the field exactly, with any settings of the API server.
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

// Charged is a decision, made by hand, that a value of a field is charged even if a run showed it to be predictable. A removal of the
// field stays free, because the client cannot choose a value by it.
type Charged struct {
	Kind  Kind   `json:"kind"`
	Field string `json:"field"`
	// Reason is the reason of the decision, as in docs/reference/fields.md.
	Reason string `json:"reason"`
}

func (c *Charged) of(w *Write) bool { return c.Kind == w.Kind && c.Field == w.Field && !w.Removed }

type writes struct {
	WriteObservation
	charged []Charged
}

// written is the embedded data. A test proves that the files decode.
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
		case w.On == update && w.Without != "":
			return nil, fmt.Errorf("written.yaml: %s %s: without is for new objects", w.Kind, w.Field)
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

// Writes returns the observed writes of the API server itself.
func Writes() []Write { return slices.Clone(written().Writes) }

// FreeWrites returns the writes that need no verb (D13): the predictable ones, without those that are charged by decision, and without
// those that are the cause of each other.
func FreeWrites() []Write {
	known := written()
	return freed(slices.DeleteFunc(Writes(), func(w Write) bool {
		return !w.Predictable() || slices.ContainsFunc(known.charged, func(c Charged) bool { return c.of(&w) })
	}))
}

// freed removes the writes whose cause may be free because of them. If the API server copies two fields into each other, each would make
// the other free, and neither would be charged.
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

// ChargedWrites returns the decisions of charged.yaml.
func ChargedWrites() []Charged { return slices.Clone(written().charged) }

// ParseWrites decodes a written WriteObservation, for tests and the recorder.
func ParseWrites(content []byte) (*WriteObservation, error) {
	w, err := decodeWrites(content, nil)
	if err != nil {
		return nil, err
	}
	return &w.WriteObservation, nil
}
