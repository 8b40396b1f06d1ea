package load

import (
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/fieldperm"
)

// TestC8_AConditionDoesNotSeeHalvesOfAValue: a controller reads two names of a field as one, and a patch together with what it changes.
// Each half alone, or the patch alone, does not meet the condition.
func TestC8_AConditionDoesNotSeeHalvesOfAValue(t *testing.T) {
	s := compileWorkloads(t,
		barrier("", "Pod", ".spec", "example.com/both", "excludedWhen: 'has(self.hostNetwork) && self.hostNetwork && has(self.hostPID) && self.hostPID'"))
	k, err := s.Kind(gvk("apps", "v1", "ControllerRevision"))
	if err != nil {
		t.Fatal(err)
	}
	const before = `"template":{"$patch":"replace","spec":{"hostPID":true}}`
	for name, c := range map[string]struct {
		old, new string
		barred   bool
	}{
		"one value":              {before, `"template":{"$patch":"replace","spec":{"hostPID":false}}`, false},
		"both":                   {before, `"template":{"$patch":"replace","spec":{"hostPID":true,"hostNetwork":true}}`, true},
		"the other half":         {before, `"template":{"$patch":"replace","spec":{"hostPID":true},"Spec":{"hostNetwork":true}}`, true},
		"halves of the template": {before, before + `,"Template":{"$patch":"replace","spec":{"hostNetwork":true}}`, true},
		"a half that was there":  {before + `,"Template":{"$patch":"replace","spec":{}}`, `"template":{"$patch":"replace","spec":{"hostPID":false}},"Template":{"$patch":"replace","spec":{}}`, true},
		"no replacement":         {before, `"template":{"spec":{"hostPID":false}}`, true},
		"no replacement, new":    {`"replicas":1`, `"template":{"spec":{"hostPID":false}}`, true},
		"another directive":      {before, `"template":{"$patch":"replace","spec":{"hostPID":false,"$retainKeys":["hostPID"]}}`, true},
		"it was no replacement":  {`"template":{"spec":{}}`, before, true},
	} {
		t.Run(name, func(t *testing.T) {
			object := func(data string) []byte {
				return []byte(`{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"a"},"revision":1,"data":{"spec":{` + data + `}}}`)
			}
			got, err := fieldperm.Diff(t.Context(), object(c.old), object(c.new), k, nil)
			if err != nil {
				t.Fatal(err)
			}
			barred := false
			for _, r := range got {
				barred = barred || r.Barred()
			}
			if barred != c.barred {
				t.Errorf("barred %t, want %t: %v", barred, c.barred, got)
			}
		})
	}
}

// TestC8_APartOfATemplateDoesNotShowWhatTheOtherPartHas: the port of a container becomes one of the host where the StatefulSet has the network of the host.
func TestC8_APartOfATemplateDoesNotShowWhatTheOtherPartHas(t *testing.T) {
	s := compileWorkloads(t, barrier("", "Pod", ".spec.containers[*].ports[*].hostPort", "example.com/onHost", "excluded: true"))
	object := func(template string) string {
		return `{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"a"},"revision":1,"data":{"spec":{"template":{` + template + `}}}}`
	}
	spec := func(port string) string {
		return `"spec":{"containers":[{"name":"a","ports":[{"containerPort":` + port + `}]}]}`
	}
	const whole = `"$patch":"replace",`
	for name, c := range map[string]struct {
		old, new string
		barred   bool
	}{
		"a part":                             {spec("80"), spec("81"), true},
		"a whole template":                   {whole + spec("80"), whole + spec("81"), false},
		"a whole template, with the network": {whole + spec("80"), whole + `"metadata":{},` + spec("81")[:8] + `"hostNetwork":true,` + spec("81")[8:], true},
		"it was a part":                      {spec("80"), whole + spec("81"), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isBarred(t, s, gvk("apps", "v1", "ControllerRevision"), object(c.old), object(c.new)); got != c.barred {
				t.Errorf("barred %t, want %t", got, c.barred)
			}
		})
	}
	deployment := func(port, network string) string {
		return inDeployment(`{"spec":{` + network + spec(port)[len(`"spec":{`):] + "}")
	}
	for network, want := range map[string]bool{
		"": false, `"hostNetwork":false,`: false, `"hostNetwork":true,`: true, `"hostNetwork":null,`: false, `"hostNetwork":"no",`: true,
	} {
		if got := isBarred(t, s, gvk("apps", "v1", "Deployment"), deployment("80", network), deployment("81", network)); got != want {
			t.Errorf("a Deployment with %q: barred %t", network, got)
		}
	}
}

// TestD8_APortHasAnOwnerWithoutTheNetworkOfTheHost: the barrier on the port of the host holds for owners too only where a template has that network.
// Otherwise no manager that applies on the server could add a port.
func TestD8_APortHasAnOwnerWithoutTheNetworkOfTheHost(t *testing.T) {
	s := compileWorkloads(t, barrier("", "Pod", ".spec.containers[*].ports[*].hostPort", "example.com/onHost", "excluded: true"))
	object := func(network, owned, ports string) string {
		return `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","managedFields":[{"manager":"gitops","operation":"Apply","apiVersion":"apps/v1","time":"2026-01-01T08:00:00Z","fieldsType":"FieldsV1","fieldsV1":` +
			`{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:ports":{` + owned + `}}}}}}}}]},` +
			`"spec":{"template":{"spec":{` + network + `"containers":[{"name":"a","ports":[` + ports + `]}]}}}}`
	}
	owns := func(port string) string {
		return `"k:{\"containerPort\":` + port + `,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}`
	}
	port := func(number string) string { return `{"containerPort":` + number + `,"protocol":"TCP"}` }
	for network, want := range map[string]bool{"": false, `"hostNetwork":false,`: false, `"hostNetwork":true,`: true} {
		one, two := object(network, owns("80"), port("80")), object(network, owns("80")+","+owns("81"), port("80")+","+port("81"))
		if got := isBarred(t, s, gvk("apps", "v1", "Deployment"), one, two); got != want {
			t.Errorf("%q: an applied port is barred: %t", network, got)
		}
		unowned := object(network, owns("80"), port("80")+","+port("81"))
		if got := isBarred(t, s, gvk("apps", "v1", "Deployment"), unowned, two); got != want {
			t.Errorf("%q: an owner of a port is barred: %t", network, got)
		}
	}
}

// TestC2_AConditionDoesNotSeeHalvesOfAValue where the API server knows not all fields: a program that ignores the case of names reads both halves.
func TestC2_AConditionDoesNotSeeHalvesOfAValue(t *testing.T) {
	const both = "excludedWhen: 'has(self.a) && has(self.b)'}"
	onSettings, onInner, onItems := "{path: .spec.settings, verb: example.com/x, "+both, "{path: .spec.settings.inner, verb: example.com/x, "+both, "{path: '.spec.list[*]', verb: example.com/x, "+both
	for name, c := range map[string]struct {
		entry, old, new string
		barred          bool
	}{
		"one half":                   {onSettings, `"settings":{"a":1}`, `"settings":{"a":2}`, false},
		"both":                       {onSettings, `"settings":{"a":1}`, `"settings":{"a":1,"b":1}`, true},
		"halves":                     {onSettings, `"settings":{"a":1}`, `"settings":{"a":1},"Settings":{"b":1}`, true},
		"the other half was there":   {onSettings, `"Settings":{"b":1}`, `"Settings":{"b":1},"settings":{"a":1}`, true},
		"a half changes":             {onSettings, `"Settings":{"b":1},"settings":{"a":1}`, `"Settings":{"b":1},"settings":{"a":2}`, true},
		"halves above":               {onInner, `"settings":{"inner":{"a":1}}`, `"settings":{"inner":{"a":1}},"Settings":{"inner":{"b":1}}`, true},
		"halves of items":            {onItems, `"list":[{"a":1}]`, `"list":[{"a":1}],"List":[{"b":1}]`, true},
		"names that lead nowhere":    {onSettings, `"settings":{"a":1},"more":{"x":1}`, `"settings":{"a":2},"more":{"x":1,"X":1}`, false},
		"one half, and another name": {onSettings, `"settings":{"a":1}`, `"settings":{"a":2},"setting":{"b":1}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, definition := range []string{unknownVaults(), strings.Replace(unknownVaults(), keepUnknown+", properties: {", keepUnknown+", properties: {settings: {type: object, properties: {a: {type: integer}, b: {type: integer}}}, ", 1)} {
				s := compileWorkloads(t, definition, permissionSchema("a", "example.com", "Vault", c.entry))
				object := func(spec string) string {
					return `{"apiVersion":"example.com/v1","kind":"Vault","metadata":{"name":"a"},"spec":{` + spec + `}}`
				}
				if got := isBarred(t, s, gvk("example.com", "v1", "Vault"), object(c.old), object(c.new)); got != c.barred {
					t.Errorf("barred %t, want %t", got, c.barred)
				}
				if c.entry != onSettings {
					break // The type of the second definition has settings without other fields.
				}
			}
		})
	}
}
