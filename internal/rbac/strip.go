package rbac

import (
	"slices"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
)

// stripper removes the parts of objects that RBAC does not use, which in many objects are the larger part, and shares the lists that many
// rules have in common, such as get, list, watch. It is safe for concurrent use. Objects that it has seen must not be changed.
type stripper struct {
	mu    sync.Mutex
	lists map[string][]string
}

// maxLists bounds what a stripper keeps for sharing, also after the last object with a list is gone. maxListBytes is the length of a list
// that is shared.
const (
	maxLists     = 4096
	maxListBytes = 256
)

// strip is a cache.TransformFunc. It returns tombstones unchanged.
func (s *stripper) strip(object any) (any, error) {
	m, err := meta.Accessor(object)
	if err != nil {
		return object, nil
	}
	m.SetManagedFields(nil)
	m.SetAnnotations(nil)
	m.SetLabels(nil)
	m.SetOwnerReferences(nil)
	m.SetFinalizers(nil)
	switch o := object.(type) {
	case *rbacv1.Role:
		s.share(o.Rules)
	case *rbacv1.ClusterRole:
		s.share(o.Rules)
	}
	return object, nil
}

func (s *stripper) share(rules []rbacv1.PolicyRule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range rules {
		r := &rules[i]
		r.Verbs, r.APIGroups, r.Resources = s.shared(r.Verbs), s.shared(r.APIGroups), s.shared(r.Resources)
	}
}

// shared returns an equal list.
func (s *stripper) shared(list []string) []string {
	key := strings.Join(list, "\x00")
	if known, ok := s.lists[key]; ok {
		// Another list may have the same key: a verb may be any text.
		if slices.Equal(known, list) {
			return known
		}
		return list
	}
	if len(list) == 0 || len(key) > maxListBytes || len(s.lists) >= maxLists {
		return list
	}
	if s.lists == nil {
		s.lists = map[string][]string{}
	}
	list = slices.Clip(list)
	s.lists[key] = list
	return list
}
