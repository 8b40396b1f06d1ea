package markers

import (
	"errors"
	"go/token"
	"strings"

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
			out.at(p.position(key), "%s", fault.Message)
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

// position returns the position of a place's key, or of its first one.
func (p *place) position(extension string) token.Position {
	for _, v := range p.merged {
		if v.Key.Extension() == extension {
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
