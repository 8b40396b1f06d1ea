package fieldrole

import (
	"strings"
	"testing"
)

// TestD13_RolesNameWhatTheAPIServerWrites with the fields, from the record of runs: what is not free and not covered.
func TestD13_RolesNameWhatTheAPIServerWrites(t *testing.T) {
	for _, c := range []struct {
		kind   string
		fields []string
		// notes and creates are parts of the comments, "" for none.
		notes, creates string
	}{
		{"v1/Service", []string{".spec.type"}, "with a change of .spec.type the API server may write .spec.clusterIP, .spec.clusterIPs, .spec.ipFamilies, .spec.ipFamilyPolicy, .spec.ports[*].nodePort. The verbs do not cover", ".spec.clusterIP, .spec.clusterIPs, "},
		{"v1/Service", []string{".spec.type", ".spec.ports[*].nodePort", ".spec.clusterIP", ".spec.ipFamilies", ".spec.ipFamilyPolicy"}, "", ".spec.healthCheckNodePort"},
		{"v1/Service", []string{".spec.type", ".spec.ports[*].nodePort", ".spec.clusterIP"}, "may write .spec.ipFamilies, .spec.ipFamilyPolicy. The verbs do not cover", ""},
		{"v1/Service", []string{".spec.externalTrafficPolicy"}, "may write .spec.healthCheckNodePort. The verbs do not cover", ""},
		{"v1/Service", []string{".spec"}, "", ""},
		{"v1/Service", []string{".spec.sessionAffinity"}, "", ".spec.clusterIP"},
		{"v1/Pod", []string{".spec.serviceAccountName"}, "", ".spec.tolerations"},
		{"v1/Node", []string{".status.capacity"}, "with a change of .status.capacity the API server may write .status.allocatable[*]. The verbs do not cover", ""},
		{"apps/v1/Deployment", []string{".spec.replicas"}, "", ""},
	} {
		rules, err := target(t, c.kind).Fields(t.Context(), c.fields, Options{})
		if err != nil {
			t.Fatal(err)
		}
		notes, creates := "", rules[0].createsText()
		for _, note := range rules[0].Notes {
			if strings.HasPrefix(note, "with a change of") {
				notes += note
			}
		}
		if !strings.Contains(notes, c.notes) || (c.notes == "") != (notes == "") {
			t.Errorf("%s %q: notes %q, want %q", c.kind, c.fields, notes, c.notes)
		}
		if !strings.Contains(creates, c.creates) || c.creates == "" && c.kind == "apps/v1/Deployment" && creates != "" {
			t.Errorf("%s %q: creates %q, want %q", c.kind, c.fields, creates, c.creates)
		}
		for _, create := range []bool{false, true} {
			text, err := (&Role{Create: create}).Manifest(rules)
			if err != nil {
				t.Fatal(err)
			}
			if said := creates != "" && strings.Contains(string(text), creates); said != (create && creates != "") {
				t.Errorf("%s %q: create %t, and the role says %t what a new object needs", c.kind, c.fields, create, said)
			}
		}
	}
}
