//go:build integration

package fields

import (
	"regexp"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fieldperm/fieldperm/test/openapi"
)

var quoted = regexp.MustCompile(`"([^"]*)"`)

// repair adds to a refused object the values that the API server requires. It reports false if the answer does not name them.
func (s *schemas) repair(object map[string]any, status *metav1.Status) (map[string]any, bool) {
	if status.Details == nil {
		return nil, false
	}
	repaired, done := runtime.DeepCopyJSON(object), false
	for _, cause := range status.Details.Causes {
		place, p, m, ok := s.placeOf(cause.Field)
		if !ok {
			continue
		}
		switch cause.Type {
		case metav1.CauseTypeFieldValueRequired:
			name := p.name()
			if values := s.values(m, name, nil); len(values) > 0 {
				repaired, done = s.edited(repaired, p, place, values[0]).object, true
			}
		case metav1.CauseTypeFieldValueNotSupported:
			_, supported, found := strings.Cut(cause.Message, "supported values: ")
			if value := quoted.FindStringSubmatch(supported); found && value != nil {
				repaired, done = s.edited(repaired, p, place, value[1]).object, true
			}
		default:
		}
	}
	return repaired, done
}

// placeOf parses the field of a cause: spec.containers[0].env[1].name, metadata.labels[a/b].
func (s *schemas) placeOf(field string) (place []any, p path, m *openapi.Type, ok bool) {
	m = s.Resolve(s.root)
	for rest := field; rest != ""; {
		if strings.HasPrefix(rest, "[") {
			end := strings.Index(rest, "]")
			if end < 0 {
				return nil, nil, nil, false
			}
			key := rest[1:end]
			rest = strings.TrimPrefix(rest[end+1:], ".")
			if m.Items != nil {
				i, err := strconv.Atoi(key)
				if err != nil || i > 100 {
					return nil, nil, nil, false
				}
				place, m = append(place, i), s.Resolve(m.Items)
			} else {
				place, m = append(place, key), s.Resolve(m.Values)
			}
			p = p.then(step{any: true})
			continue
		}
		end := strings.IndexAny(rest, ".[")
		if end < 0 {
			end = len(rest)
		}
		name := rest[:end]
		rest = strings.TrimPrefix(rest[end:], ".")
		child := m.Properties[name]
		if child == nil {
			return nil, nil, nil, false
		}
		place, p, m = append(place, name), p.then(step{field: name}), s.Resolve(child)
	}
	return place, p, m, len(place) > 0
}
