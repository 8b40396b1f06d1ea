package observation

import (
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/generators/webhooks"
)

// P9: between two looks another client can delete the configuration and make it again with the same content.
func TestP9_AReplacedConfigurationIsAGap(t *testing.T) {
	for name, replace := range map[string]func(live *admissionregistrationv1.ValidatingWebhookConfiguration){
		"another object":     func(live *admissionregistrationv1.ValidatingWebhookConfiguration) { live.UID = "another" },
		"another generation": func(live *admissionregistrationv1.ValidatingWebhookConfiguration) { live.Generation += 2 },
	} {
		p := newPlane(t)
		k := p.observing()
		configurations := p.configs.AdmissionregistrationV1().ValidatingWebhookConfigurations()
		live, err := configurations.Get(t.Context(), webhooks.ObservedName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		replace(live)
		if _, err := configurations.Update(t.Context(), live, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		p.after(5*time.Second, k)
		p.after(30*time.Second, k)
		p.want(name, 2, 0, "5s the webhook configuration fieldperm-observed was replaced")
	}
}

// P9: another client changes the configuration in the moment in which an administrator makes another observation.
func TestP9_AConfigurationThatChangesWithTheObservationsIsAGap(t *testing.T) {
	for what, change := range map[string]func(p *plane, name string) error{
		"": func(*plane, string) error { return nil },
		"deleted": func(p *plane, name string) error {
			return p.configs.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(p.t.Context(), name, metav1.DeleteOptions{})
		},
		"changed": func(p *plane, name string) error {
			return p.update(name, func(live *admissionregistrationv1.ValidatingWebhookConfiguration) { live.Webhooks = nil })
		},
		"replaced": func(p *plane, name string) error {
			return p.update(name, func(live *admissionregistrationv1.ValidatingWebhookConfiguration) { live.UID = "another" })
		},
	} {
		p := newPlane(t)
		k := p.observing()
		if err := change(p, webhooks.ObservedName); err != nil {
			t.Fatal(err)
		}
		p.other = p.object.DeepCopy()
		p.other.Name, p.other.UID, p.other.Spec.Subjects[0].Name = "other", "v", "bob"
		p.after(5*time.Second, k)
		p.after(30*time.Second, k)
		if what == "" {
			p.want("nothing", 1, 0)
		} else {
			p.want(what, 2, 0, "5s the webhook configuration fieldperm-observed was "+what)
		}
	}
}

func (p *plane) update(name string, change func(*admissionregistrationv1.ValidatingWebhookConfiguration)) error {
	configurations := p.configs.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	live, err := configurations.Get(p.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	change(live)
	_, err = configurations.Update(p.t.Context(), live, metav1.UpdateOptions{})
	return err
}

// P9: an API server with an earlier CustomResourceDefinition accepts no status with a new field. The condition says so, and no count is lost.
func TestP9_AStatusOfWhichNoCountIsAcceptedHasTheCondition(t *testing.T) {
	p := newPlane(t)
	k := p.observing()
	p.write(k)
	p.after(30*time.Second, k)
	p.want("before", 2, 1)
	p.write(k)
	p.refuse = apierrors.NewBadRequest(".status.denied: field not declared in schema")
	p.refuses = func(s *v1alpha1.PermissionObservationStatus) bool { return s.Writes > 1 }
	p.clock.SetTime(p.clock.Now().Add(30 * time.Second))
	for i := range 2 {
		if err := k.keep(t.Context()); err == nil || !strings.Contains(err.Error(), "not declared") {
			t.Errorf("attempt %d: %v", i, err)
		}
	}
	if s := &p.object.Status; p.condition() != "False NotWritten" || s.Writes != 1 || !strings.Contains(s.Conditions[0].Message, "cannot be written: .status.denied") {
		t.Errorf("%+v", s)
	}
	p.refuse = nil
	p.after(30*time.Second, k)
	if s := &p.object.Status; p.condition() != "True Observing" || s.Writes != 2 {
		t.Errorf("%+v", s)
	}
}
