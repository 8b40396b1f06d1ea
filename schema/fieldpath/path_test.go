package fieldpath

import "testing"

func TestPath_String(t *testing.T) {
	root := Path{}
	for want, p := range map[string]Path{
		".":                                 root,
		".spec.replicas":                    root.Field("spec").Field("replicas"),
		`.metadata.labels["a/b"]`:           root.Field("metadata").Field("labels").Key("a/b"),
		`.spec.a[3]`:                        root.Field("spec").Field("a").Index(3),
		`.spec.a[="x"]`:                     root.Field("spec").Field("a").Member([]byte(`"x"`)),
		`.a[port=80,protocol="TCP",x=null]`: root.Field("a").Item([]Key{{"port", []byte("8e1")}, {"protocol", []byte(`"TCP"`)}, {"x", nil}}),
		`.a[x=…]`:                           root.Field("a").Item([]Key{{"x", []byte(`{}`)}}),
	} {
		if got := p.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestPath_IsImmutable(t *testing.T) {
	spec := Path{}.Field("spec")
	a, b := spec.Field("a"), spec.Key("b")
	if spec.String() != ".spec" || a.String() != ".spec.a" || b.String() != `.spec["b"]` {
		t.Errorf("%s, %s, %s", spec, a, b)
	}
	above, step := a.Cut()
	if above.String() != ".spec" || step.Name != "a" || step.Kind != StepField {
		t.Errorf("%s without its last step is %s and %+v", a, above, step)
	}
	if a.Top() != "spec" || (Path{}).Top() != "" || !spec.IsTop("spec") || a.IsTop("a") || !(Path{}).IsRoot() || a.IsRoot() {
		t.Error("a path does not know where it starts")
	}
}
