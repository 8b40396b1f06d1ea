package admission

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fieldperm/fieldperm/test/previous/fieldperm"
	"github.com/fieldperm/fieldperm/test/previous/internal/shorten"
)

// These are the limits of the causes of a denial, the first one included: their number, the bytes of their paths and messages together, and the
// bytes of one path and of one message. Paths and verbs contain names from the object, of any length.
const (
	maxDenialCauses = 50
	maxCauseBytes   = 16 << 10
	maxCauseText    = 256
	maxCauseMessage = 1024
	// lastCauseBytes is the room for the cause that says how many are left out.
	lastCauseBytes = 128
)

// furtherCauses returns a cause for each change that is not known to be covered, after the first, which has used bytes: the path, and the verbs that
// would cover it. No verb is asked for: a verb that the user holds may be among those of a cause.
func furtherCauses(result *Result, used int) []metav1.StatusCause {
	var out []metav1.StatusCause
	left := 0
	for i := range result.Requirements {
		r := &result.Requirements[i]
		if r == result.Denial.Requirement || i < len(result.CoveredBy) && result.CoveredBy[i] != "" {
			continue
		}
		if result.Mode == fieldperm.ModeUncovered && !r.Barred() {
			continue // The generic permission covers it.
		}
		if left > 0 {
			left++
			continue
		}
		cause := metav1.StatusCause{
			Type:    metav1.CauseType(field.ErrorTypeForbidden),
			Field:   shorten.Text(r.Path.String(), maxCauseText),
			Message: needsOf(r),
		}
		size := len(cause.Field) + len(cause.Message)
		if len(out)+2 >= maxDenialCauses || used+size+lastCauseBytes > maxCauseBytes {
			left++
			continue
		}
		used += size
		out = append(out, cause)
	}
	if left > 0 {
		out = append(out, metav1.StatusCause{
			Type:    metav1.CauseType(field.ErrorTypeForbidden),
			Message: fmt.Sprintf("%d further changes are not listed", left),
		})
	}
	return out
}

// needsOf returns the verbs that would cover a change, from specific to general, as in a message (P5). Verbs that have no room are counted.
func needsOf(r *fieldperm.Requirement) string {
	candidates := r.Candidates()
	switch len(candidates) {
	case 0:
		return "no verb covers it"
	case 1:
		return "needs " + shorten.Text(candidates[0].String(), maxCauseMessage)
	}
	var b strings.Builder
	b.WriteString("needs any one of ")
	begin := b.Len()
	for i := len(candidates) - 1; i >= 0; i-- {
		text := candidates[i].String()
		if b.Len()+len(text) > maxCauseMessage {
			// More general verbs are shorter: they have no parameter of the object.
			continue
		}
		if b.Len() > begin {
			b.WriteString(", ")
		}
		b.WriteString(text)
	}
	return b.String()
}
