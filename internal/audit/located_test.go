package audit

import "testing"

func TestLines(t *testing.T) {
	const file = `# a comment
kind: ClusterRole
metadata: {name: a}
rules:
- verbs: [get]
- verbs:
  - get
  - granular
---
kind: List
items:
- kind: Role
  metadata:
    name: a
    namespace: shop
  rules: [{verbs: &v [x,
    y]}, {verbs: *v}]
- kind: RoleBinding
  metadata: {name: b, namespace: shop}
---
kind: RoleList
items:
- metadata: {name: c, namespace: shop}
  rules: []
`
	lines := NewLines([]byte(file))
	for _, c := range []struct {
		of   Ref
		path string
		want int
	}{
		{Ref{Kind: clusterRoleKind, Namespace: "", Name: "a"}, "rules[1].verbs[1]", 8},
		{Ref{Kind: clusterRoleKind, Namespace: "", Name: "a"}, "", 2},
		{Ref{Kind: clusterRoleKind, Namespace: "", Name: "a"}, "rules[7].verbs[1]", 5},
		{Ref{Kind: roleKind, Namespace: "shop", Name: "a"}, "rules[0].verbs[1]", 17},
		{Ref{Kind: roleKind, Namespace: "shop", Name: "a"}, "rules[1].verbs[1]", 17},
		{Ref{Kind: roleBindingKind, Namespace: "shop", Name: "b"}, "subjects[0]", 18},
		{Ref{Kind: roleKind, Namespace: "shop", Name: "c"}, "", 23},
	} {
		line := lines.Of(c.of)
		if line == nil {
			t.Errorf("%s: no lines", c.of)
			continue
		}
		if got := line(c.path); got != c.want {
			t.Errorf("%s %s: line %d, want %d", c.of, c.path, got, c.want)
		}
	}
	if lines.Of(Ref{Kind: roleKind, Namespace: "other", Name: "a"}) != nil {
		t.Error("an object that is not there has lines")
	}
	if (&Lines{}).Of(Ref{}) != nil || NewLines([]byte("{a: [")).Of(Ref{Kind: roleKind, Namespace: "shop", Name: "a"}) != nil {
		t.Error("a file that cannot be read has lines")
	}
}
