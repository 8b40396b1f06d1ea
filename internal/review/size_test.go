package review

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// Each change repeats the names above it, so the length of a response could be the length of the names times the number of changes.
func TestReview_AnswerIsBounded(t *testing.T) {
	f := newFixture(t)
	deployment := func(value string) string {
		var env []string
		for i := range 2000 {
			env = append(env, fmt.Sprintf(`{"name":"e%d","value":%q}`, i, value))
		}
		return `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},"spec":{"template":{"spec":{"containers":[{"name":"` +
			strings.Repeat("n", 2000) + `","image":"x","env":[` + strings.Join(env, ",") + `]}]}}}}`
	}
	w := f.post(named("alice"), question(about+`,"operation":"UPDATE","oldObject":`+deployment("a")+`,"object":`+deployment("b")))
	if w.Code != http.StatusRequestEntityTooLarge || !strings.Contains(w.Body.String(), "ask about fewer at once") || w.Body.Len() > 1000 {
		t.Errorf("%d, %d bytes: %.200s", w.Code, w.Body.Len(), w.Body)
	}
}
