package uncovered

import (
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

const (
	// firstRepair is the time between the first repair and the second; it doubles up to lastRepair.
	firstRepair, lastRepair = time.Second, 10 * time.Second
	// calm is how long the configuration must have stood for the next repair to be at once again.
	calm = 5 * time.Minute
)

// repairs bounds how often the same content is written. Without it two writers that do not agree, say
// replicas with different addresses or a fieldperm too old to know of versions, would write as fast as
// their watches tell them. What is to be written for the first time never waits.
type repairs struct {
	// last is what was last written, at that time. pause is how long to wait before it is written again.
	last  *admissionregistrationv1.ValidatingWebhookConfiguration
	at    time.Time
	pause time.Duration
}

// wait returns how long want must wait.
func (r *repairs) wait(want *admissionregistrationv1.ValidatingWebhookConfiguration, now time.Time) time.Duration {
	if r.last == nil || !same(r.last, want) {
		return 0
	}
	return max(0, r.at.Add(r.pause).Sub(now))
}

// wrote notes that want was written.
func (r *repairs) wrote(want *admissionregistrationv1.ValidatingWebhookConfiguration, now time.Time) {
	if r.last != nil && same(r.last, want) {
		r.pause = min(max(2*r.pause, firstRepair), lastRepair)
	}
	r.last, r.at = want, now
}

// stands notes that the configuration is as it should be.
func (r *repairs) stands(now time.Time) {
	if now.Sub(r.at) >= calm {
		r.pause = 0
	}
}
