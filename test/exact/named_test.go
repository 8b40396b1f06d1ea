package exact

import (
	"cmp"
	"encoding/json"
	"slices"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
)

// found is a pair for which Diff or the oracle once gave a wrong result.
type found struct {
	name string
	// schema and permissions describe a custom resource. Without them the object is a Deployment, or of the kind.
	schema, permissions string
	kind                runtimeschema.GroupVersionKind
	old, new            string
	want                []string
}

// cases are pairs that random tests have found, made small, each with the result that Diff and the oracle must give. The comment describes
// the former fault.
func cases() []found {
	return []found{
		{
			// A Diff of decoded objects took null for the version "".
			name: "D8 an apiVersion that is no text is the version of no entry",
			old:  `{"metadata":{"managedFields":[{"manager":"m","operation":"Update","apiVersion":"apps/v1","fieldsType":"FieldsV1"}]}}`,
			new:  `{"apiVersion":null,"metadata":{"managedFields":[{"manager":"m","operation":"Update","fieldsType":"FieldsV1"}]}}`,
			want: []string{"added .apiVersion: granular:*", "ownership .: granular:*"},
		},
		{
			// Diff took the parameter from a place further out, or took none.
			name:        "D8 an index names no item of a list with keys",
			schema:      `{"type":"object","properties":{"a":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object","x-kubernetes-map-type":"atomic","properties":{"name":{"type":"string"}}}}}}`,
			permissions: `[{"path":".a[*].name","parameterSource":"p"},{"path":".a[*]","verb":"example.com/v","parameterizedBy":"p"}]`,
			old:         `{"apiVersion":"example.com/v1","metadata":{},"a":[{"name":"x"}]}`,
			new:         `{"apiVersion":"example.com/v1","metadata":{"managedFields":[{"manager":"m","operation":"Apply","apiVersion":"example.com/v1","fieldsType":"FieldsV1","fieldsV1":{"f:a":{"i:0":{}}}}]},"a":[{"name":"x"}]}`,
			want:        []string{"ownership .a: granular:*", `ownership .a[name="x"]: granular:* granular:example.com/v granular:example.com/v(x)`},
		},
		{
			// Diff charged only the first of them: the paths look alike, and the second one may have a barrier.
			name:        "D8 of two owned paths that look alike each is charged",
			schema:      `{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"string"}}},"a.b":{"type":"string"}}}`,
			permissions: `[{"path":".a.b","verb":"example.com/free"},{"path":"[\"a.b\"]","verb":"example.com/guarded","excluded":true}]`,
			old:         `{"apiVersion":"example.com/v1","metadata":{},"a":{"b":""},"a.b":""}`,
			new:         `{"apiVersion":"example.com/v1","metadata":{"managedFields":[{"manager":"m","operation":"Apply","apiVersion":"example.com/v1","fieldsType":"FieldsV1","fieldsV1":{"f:a":{"f:b":{}},"f:a.b":{}}}]},"a":{"b":""},"a.b":""}`,
			want:        []string{"ownership .a.b: granular:* granular:example.com/free", "ownership .a.b: granular:* | granular:example.com/guarded"},
		},
		{
			name:        "D10 two names that differ in case are two where no name has a verb",
			schema:      `{"type":"object","properties":{"a":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}`,
			permissions: `[{"path":".a","verb":"example.com/v"}]`,
			old:         `{"apiVersion":"example.com/v1","a":{"b":1,"c":1}}`,
			new:         `{"apiVersion":"example.com/v1","a":{"b":1,"B":2,"c":1}}`,
			want:        []string{`added .a["B"]: granular:* granular:example.com/v`},
		},
		{
			// The law of swapped objects did not know the rule.
			name: "D13 a status is cleared with a change of its cause in one direction",
			kind: runtimeschema.GroupVersionKind{Version: "v1", Kind: "Service"},
			old:  `{"spec":{"type":"true"}}`,
			new:  `{"status":{"loadBalancer":{"ingress":[]}}}`,
			want: []string{"added .status.loadBalancer.ingress: granular:* granular:status granular:loadBalancerStatus", "removed .spec.type: granular:* granular:specification granular:exposure"},
		},
		{
			// The oracle folded the parts. An API server that does so leaves none of them.
			name: "D8 parts of an atomic item that stay are not the whole in an unknown version",
			old:  `{"metadata":{"managedFields":[{"manager":"m","operation":"Update","apiVersion":"v0","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"c\"}":{"f:a":{}}}}}}]}}`,
			new:  `{"metadata":{"managedFields":[{"manager":"m","operation":"Update","apiVersion":"v0","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"c\"}":{".":{},"f:a":{}}}}}}]}}`,
			want: []string{"ownership .: granular:*"},
		},
	}
}

func TestExact_NamedCases(t *testing.T) {
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			p := &pair{subject: c.subject(t), oldText: []byte(c.old), newText: []byte(c.new)}
			var err error
			if p.old, err = parseWhole(p.oldText); err != nil {
				t.Fatal(err)
			}
			if p.new, err = parseWhole(p.newText); err != nil {
				t.Fatal(err)
			}
			v := theJudges().judge(p)
			if v.wrong != "" || !slices.Equal(v.fast.sorted(), slices.Sorted(slices.Values(c.want))) {
				t.Errorf("%s\nwant: %q\nfast: %s\noracle: %s", v.wrong, c.want, v.fast, v.oracle)
			}
		})
	}
}

func (c *found) subject(t *testing.T) *subject {
	t.Helper()
	if c.schema == "" {
		all, err := builtIn()
		if err != nil {
			t.Fatal(err)
		}
		kind := cmp.Or(c.kind, runtimeschema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
		one := *all[slices.IndexFunc(all, func(s *subject) bool { return s.kind.GroupVersionKind == kind })]
		return &one
	}
	every, err := catalogue()
	if err != nil {
		t.Fatal(err)
	}
	subjects, errs := compiled(crd(map[string]json.RawMessage{"v1": json.RawMessage(c.schema)}, map[string]json.RawMessage{"v1": json.RawMessage(c.permissions)}, "None"), every)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return subjects[0]
}
