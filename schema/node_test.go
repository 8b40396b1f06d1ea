package schema

import "testing"

// TestLookup_IsChildAndIsFieldWithoutAllocation compares Lookup with Child and IsField for every way in which a key can be known.
func TestLookup_IsChildAndIsFieldWithoutAllocation(t *testing.T) {
	leaf := func() *Node { return NewNode(NodeParts{Scalar: true}) }
	both := NewMap(MapParts{Fields: map[string]*Node{"name": leaf()}, Keys: map[string]*Node{"a.b/c": leaf(), "name": leaf()}, Value: leaf()})
	for name, m := range map[string]*Map{
		"fields, keys and values": both,
		"a struct":                NewMap(MapParts{Fields: both.Parts().Fields}),
		"a map":                   NewMap(MapParts{Value: leaf()}),
		"neither":                 NewMap(MapParts{}),
		"unknown":                 unknown.Map(),
	} {
		for _, key := range []string{"name", "a.b/c", "other", ""} {
			child, field := m.Lookup([]byte(key))
			if child == nil || child != m.Child(key) || field != m.IsField(key) {
				t.Errorf("%s: Lookup(%q) = %p, %v; want %p, %v", name, key, child, field, m.Child(key), m.IsField(key))
			}
			raw := []byte(key)
			if n := testing.AllocsPerRun(100, func() { child, field = m.Lookup(raw) }); n != 0 {
				t.Errorf("%s: Lookup(%q) allocates %v times", name, key, n)
			}
		}
	}
	if child, field := (*Map)(nil).Lookup([]byte("name")); child != unknown || field {
		t.Errorf("no map: %p, %v; want the node of unknown fields, %p", child, field, unknown)
	}
}

func TestNode_IsMadeOnce(t *testing.T) {
	n := NewNode(NodeParts{})
	defer func() {
		if recover() == nil {
			t.Error("a node was changed")
		}
	}()
	n.Make(NodeParts{Scalar: true})
}
