package uncovered

import (
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

const (
	// firstRepair is the time between the first repair and the second. It doubles up to lastRepair.
	firstRepair, lastRepair = time.Second, 10 * time.Second
	// calm is how long the configuration must be unchanged until the next repair happens without a delay again.
	calm = 5 * time.Minute
)

// repairs bounds how often the same content is written. Otherwise two writers that disagree (for example, replicas with different
// addresses, or an old fieldperm that does not know versions) would write as fast as their watches report changes. New content is
// written without a delay.
type repairs struct {
	// last is the content that was last written, and at is when. pause is how long to wait before the same content is written again.
	last  *admissionregistrationv1.ValidatingWebhookConfiguration
	at    time.Time
	pause time.Duration
}

// wait returns how long the write of want must wait.
func (r *repairs) wait(want *admissionregistrationv1.ValidatingWebhookConfiguration, now time.Time) time.Duration {
	if r.last == nil || !Same(r.last, want) {
		return 0
	}
	return max(0, r.at.Add(r.pause).Sub(now))
}

// wrote records that want was written.
func (r *repairs) wrote(want *admissionregistrationv1.ValidatingWebhookConfiguration, now time.Time) {
	if r.last != nil && Same(r.last, want) {
		r.pause = min(max(2*r.pause, firstRepair), lastRepair)
	}
	r.last, r.at = want, now
}

// stands records that the configuration is as it should be.
func (r *repairs) stands(now time.Time) {
	if now.Sub(r.at) >= calm {
		r.pause = 0
	}
}
