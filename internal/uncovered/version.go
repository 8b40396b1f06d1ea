package uncovered

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/fieldperm/fieldperm/generators/webhooks"
)

// During an upgrade, two versions of fieldperm run at the same time, and each may know other match conditions and other built-in
// barriers. So each writes its version to the configuration, and:
//
//   - A newer version replaces the content that an older one wrote.
//   - An older version only adds rules, and its address, to the content of a newer one. It removes and replaces
//     nothing else, so that it never narrows a configuration that it does not know.
//
// The policy fieldperm-guard prevents others from changing the annotation. Without the policy, a user could write a version that is
// newer than any real one: then Applied is called with false, and nothing is repaired.

// newerWriter returns the version that wrote a configuration, if it is newer than the other; else "".
func newerWriter(live *admissionregistrationv1.ValidatingWebhookConfiguration, than string) string {
	if live == nil {
		return ""
	}
	wrote := live.Annotations[webhooks.WriterAnnotation]
	writer, ok := parse(wrote)
	if !ok {
		return ""
	}
	if own, ok := parse(than); ok && !own.LessThan(writer) {
		return ""
	}
	return wrote
}

func parse(text string) (*version.Version, bool) {
	v, err := version.ParseSemantic(text)
	return v, err == nil
}

// widened returns live with the additions of want: rules, the webhook for barriers if it is missing, the owner and the address. Its
// metadata contains only fieldperm's fields.
func widened(live, want *admissionregistrationv1.ValidatingWebhookConfiguration) *admissionregistrationv1.ValidatingWebhookConfiguration {
	out := want.DeepCopy()
	out.ObjectMeta = metav1.ObjectMeta{
		Name: want.Name, Labels: want.Labels, OwnerReferences: want.OwnerReferences,
		Annotations: map[string]string{webhooks.WriterAnnotation: live.Annotations[webhooks.WriterAnnotation]},
	}
	out.Webhooks = nil
	for i := range live.Webhooks {
		if ours(live.Webhooks[i].Name) {
			out.Webhooks = append(out.Webhooks, *live.Webhooks[i].DeepCopy())
		}
	}
	needed := webhookOf(want)
	if needed == nil {
		return out
	}
	has := webhookOf(out)
	if has == nil {
		out.Webhooks = append(out.Webhooks, *needed)
		return out
	}
	has.ClientConfig = needed.ClientConfig
	if lacking := webhooks.Subtract(rulesOf(want), rulesOf(live)); len(lacking) > 0 {
		has.Rules = append(has.Rules, webhooks.UncoveredWebhook(needed.ClientConfig, lacking).Rules...)
	}
	return out
}
