package markers

import (
	"errors"
	"go/token"
	"strings"

	"github.com/fieldperm/fieldperm/generators/markers/grammar"
	"github.com/fieldperm/fieldperm/schema"
)

// positioned replaces the pointers in errors of the compiler by the positions of the markers that they are about.
func (d *definition) positioned(errs []error, places map[string]*place) []error {
	var out mistakes
	for _, err := range errs {
		var fault *schema.Error
		if !errors.As(err, &fault) {
			out.at(d.anyRoot(), "%v", err)
			continue
		}
		if p, key := nearestPlace(places, fault.Pointer); p != nil {
			out.at(p.position(key, fault.Message), "%s", fault.Message)
			continue
		}
		out.at(d.rootAt(fault.Pointer), "%s:%s: %s", fault.Source, fault.Pointer, fault.Message)
	}
	return out.errors()
}

// nearestPlace returns the place of a pointer, and the key if the pointer is one of a key.
func nearestPlace(places map[string]*place, pointer string) (*place, string) {
	if p := places[pointer]; p != nil {
		return p, ""
	}
	i := strings.LastIndexByte(pointer, '/')
	if i < 0 {
		return nil, ""
	}
	return places[pointer[:i]], pointer[i+1:]
}

// mentions are words of the compiler's messages by which a message is about a key.
var mentions = []struct {
	text string
	key  grammar.Key
}{
	{"excludedWhen", grammar.When}, {"parameterExpression", grammar.Expression}, {"treats a parameter", grammar.Treatment},
	{"parameterTreatment", grammar.Treatment}, {"emits parameter", grammar.By}, {"emits no parameter", grammar.Source}, {"excluded", grammar.Excluded},
}

// position returns the position of the key that a fault is about: the one of its pointer, or one that its message mentions, or the first.
func (p *place) position(extension, message string) token.Position {
	for _, v := range p.merged {
		if v.Key.Extension() == extension {
			return v.ValuePosition
		}
	}
	for _, m := range mentions {
		if v := p.merged.Get(m.key); v != nil && strings.Contains(message, m.text) {
			return v.ValuePosition
		}
	}
	return p.merged[0].Position
}

// rootAt returns the position of the type of the version that a pointer is about.
func (d *definition) rootAt(pointer string) token.Position {
	position := d.anyRoot()
	versionSchemas(d.tree, func(i int, name string, _ map[string]any) {
		prefix := versionPointer(i)
		if v := d.versions[name]; v != nil && (pointer == prefix || strings.HasPrefix(pointer, prefix+"/")) {
			position = v.root.Position
		}
	})
	return position
}

// anyRoot returns the position of the type of the first version.
func (d *definition) anyRoot() token.Position {
	var out token.Position
	versionSchemas(d.tree, func(_ int, name string, _ map[string]any) {
		if v := d.versions[name]; v != nil && !out.IsValid() {
			out = v.root.Position
		}
	})
	return out
}
