package server

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/sources"
	"github.com/fieldperm/fieldperm/internal/uncovered"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/sets"
)

// W4: if no barrier can cover a resource, its status never claims enforcement, and the message has the cure.
func TestW4_StatusNamesTheResourcesOutOfReach(t *testing.T) {
	set := func(group, resource string) *sources.ObjectState {
		return &sources.ObjectState{Documents: compile.Documents{Uncovered: []sets.Document{{Set: v1alpha1.UncoveredPermissionSet{Spec: v1alpha1.UncoveredPermissionSetSpec{
			UncoveredPermissions: []string{"granular:labels"}, Resources: []v1alpha1.ResourceRule{{APIGroups: []string{group}, Resources: []string{resource}}},
		}}}}}}
	}
	permission := func(group, kind string, excluded bool) *sources.ObjectState {
		return &sources.ObjectState{Documents: compile.Documents{Permissions: []compile.PermissionDocument{{
			Group: group, Kind: kind, Entries: []compile.Entry{{FieldPermission: v1alpha1.FieldPermission{Excluded: excluded}}},
		}}}}
	}
	s := &barriers{keeper: uncovered.New(uncovered.Config{})}
	for name, c := range map[string]struct {
		object *sources.ObjectState
		want   string
	}{
		"a set on leases":                {set("coordination.k8s.io", "leases"), "leases.coordination.k8s.io"},
		"a set on webhooks":              {set("admissionregistration.k8s.io", "mutatingwebhookconfigurations"), "mutatingwebhookconfigurations.admissionregistration.k8s.io"},
		"a PermissionSchema of leases":   {permission("coordination.k8s.io", "Lease", true), "leases.coordination.k8s.io"},
		"one of leases without barriers": {permission("coordination.k8s.io", "Lease", false), ""},
	} {
		if got := floorResources(c.object); strings.Join(got, " ") != c.want {
			t.Errorf("%s: out of reach is %q, want %q", name, got, c.want)
		}
		if c.want == "" {
			continue
		}
		if got := s.enforced(c.object); got.Status != metav1.ConditionFalse || got.Reason != v1alpha1.ReasonOutOfReach || !strings.Contains(got.Message, c.want) {
			t.Errorf("%s: status is %+v", name, got)
		}
	}
	if got := (&barriers{}).enforced(set("", "pods")); got.Status != metav1.ConditionUnknown || got.Reason != v1alpha1.ReasonNotKept || !strings.Contains(got.Message, "--uncovered-configuration") {
		t.Errorf("nothing is kept: %+v", got)
	}
}

// A8: the flags for the address of fieldperm with a static manifest must be complete, or absent.
func TestA8_FlagsNameTheAddressOfFieldperm(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"whole":            {func(*Options) {}, ""},
		"with a slash":     {func(o *Options) { o.WebhookURL += "/" }, ""},
		"no configuration": {func(o *Options) { o.UncoveredConfiguration = "" }, "--webhook-url: has a meaning with --uncovered-configuration only"},
		"no URL":           {func(o *Options) { o.WebhookURL = "" }, "needs --webhook-configuration or --webhook-url"},
		"no CA":            {func(o *Options) { o.WebhookCAFile = "" }, "--webhook-url: needs --webhook-ca-file"},
		"two ways":         {func(o *Options) { o.WebhookConfiguration = "fieldperm" }, "--webhook-url: excludes --webhook-configuration"},
		"plain HTTP":       {func(o *Options) { o.WebhookURL = "http://127.0.0.1:9443" }, "is not of the form https://host:port"},
		"a path":           {func(o *Options) { o.WebhookURL += "/admit" }, "is not of the form https://host:port"},
		"credentials":      {func(o *Options) { o.WebhookURL = "https://a:b@127.0.0.1:9443" }, "is not of the form https://host:port"},
	} {
		o := NewOptions()
		o.UncoveredConfiguration, o.WebhookURL, o.WebhookCAFile = "fieldperm-uncovered", "https://127.0.0.1:9443", "ca.crt"
		c.change(o)
		var messages []string
		for _, err := range o.validateUncovered() {
			messages = append(messages, err.Error())
		}
		if got := strings.Join(messages, "\n"); !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%s: faults are %q, want %q", name, got, c.want)
		}
	}
}
