package load

import (
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/fieldperm"
)

// TestD10_AnIrregularObjectIsChargedAsAWhole: where an object keeps unknown fields, encoding/json reads the names of fields in every case, in the order of
// the object, so that "liſt" after "list" takes its place. U+017F is another s.
func TestD10_AnIrregularObjectIsChargedAsAWhole(t *testing.T) {
	s := compileWorkloads(t, unknownVaults(), permissionSchema("a", "example.com", "Vault", `{path: .spec.settings.limits.max, verb: example.com/max, excluded: true}, {path: '.spec["a/"]', verb: example.com/a}`))
	k, err := s.Kind(gvk("example.com", "v1", "Vault"))
	if err != nil {
		t.Fatal(err)
	}
	const settings = `"settings":{"limits":{"max":1},"other":1}`
	for name, c := range map[string]struct {
		old, new string
		whole    bool
	}{
		"a name of the schema":              {settings, settings + `,"settingſ":null`, true},
		"before it":                         {settings, `"Settings":{},` + settings, true},
		"without it":                        {settings, strings.Replace(settings, "settings", "Settings", 1), true},
		"below another name":                {settings, `"settings":{"limitſ":null,"limits":{"max":1},"other":1}`, true},
		"one that goes":                     {settings + `,"settingſ":null`, settings, true},
		"one that stays":                    {settings + `,"settingſ":null`, settings + `,"settingſ":null,"free":1`, true},
		"two unknown names":                 {settings, settings + `,"free":1,"Free":2`, true},
		"a prefix":                          {settings, settings + `,"A/x":1`, true},
		"keys of a prefix":                  {settings, settings + `,"a/x":1,"a/X":1`, true},
		"a name twice":                      {settings, settings + `,"x":{"y":{"z":1,"z":1}}`, true},
		"a name twice, that stays":          {settings + `,"x":1,"x":1`, settings + `,"x":1,"x":1,"free":1`, true},
		"nothing changes":                   {settings + `,"Settings":1`, `"Settings":1,` + settings, false},
		"names where no name has a verb":    {settings, settings + `,"free":{"a":1,"A":2}`, false},
		"a key with a prefix of its own":    {settings, settings + `,"a/x":1,"b/x":1`, false},
		"a name that is longer by a letter": {settings, settings + `,"setting":null`, false},
	} {
		t.Run(name, func(t *testing.T) {
			object := func(spec string) []byte {
				return []byte(`{"apiVersion":"example.com/v1","kind":"Vault","metadata":{"name":"a"},"spec":{` + spec + `}}`)
			}
			got, err := fieldperm.Diff(t.Context(), object(c.old), object(c.new), k, nil)
			if err != nil {
				t.Fatal(err)
			}
			whole := len(got) == 2 && got[0].Path.IsRoot() && !got[0].Barred() && got[0].Chain[0].String() == "granular:*" &&
				got[1].Path.IsRoot() && got[1].Barred() && len(got[1].Chain) == 1 && got[1].Chain[0].String() == "granular:example.com/max"
			if whole != c.whole {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestD10_NamesOfDeclaredFieldsCountInEveryCase where the API server keeps other fields beside them, in the data of a ControllerRevision too, which the
// StatefulSet controller decodes with encoding/json. Names of labels are exact.
func TestD10_NamesOfDeclaredFieldsCountInEveryCase(t *testing.T) {
	s, errs := compileFragments(t,
		runner("{type: object, "+withKey+", properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {hostNetwork: {type: boolean}}}}}"),
		fragmentSchema("podSpec", "{path: .hostNetwork, verb: example.com/host, excluded: true}"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for what, c := range map[string]struct {
		kind, group, old, new string
		barred                bool
	}{
		"the name":                {"Runner", "example.com", `{"spec":{"template":{"spec":{}}}}`, `{"spec":{"template":{"spec":{"hostNetwork":true}}}}`, true},
		"in another case":         {"Runner", "example.com", `{"spec":{"template":{"spec":{}}}}`, `{"spec":{"template":{"spec":{"HostNetwork":true}}}}`, true},
		"another name":            {"Runner", "example.com", `{"spec":{"template":{"spec":{}}}}`, `{"spec":{"template":{"spec":{"another":true}}}}`, false},
		"a revision":              {"ControllerRevision", "apps", `{"data":{}}`, `{"data":{"spec":{"tEmplate":{"spec":{"HOSTNETWORK":true}}}}}`, true},
		"a label":                 {"ControllerRevision", "apps", `{"data":{}}`, `{"data":{"spec":{"template":{"metadata":{"labels":{"a":"b","A":"b"}}}}}}`, false},
		"a field that is dropped": {"Deployment", "apps", `{"spec":{}}`, `{"spec":{"template":{"spec":{"HostNetwork":true}}}}`, false},
	} {
		if got := isBarred(t, s, gvk(c.group, "v1", c.kind), c.old, c.new); got != c.barred {
			t.Errorf("%s: barred %t", what, got)
		}
	}
}
