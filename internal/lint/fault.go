package lint

import (
	"fmt"
	"strings"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/finding"
	"github.com/fieldperm/fieldperm/internal/spelling"
	"github.com/fieldperm/fieldperm/schema"
)

// These are parts of the messages of the compiler that tell faults with a rule of their own from others. TestFaults_HaveTheirRules fails if the
// compiler changes them.
const (
	saysNoSource  = "nothing on the path emits parameter "
	saysTreatment = "parameter treatment "
	saysSpelling  = "is not lowerCamelCase"
	saysDomain    = "is not a DNS subdomain"
)

// fault reports an error of the decoder or the compiler about an object.
func (l *linter) fault(o *object, e *schema.Error) {
	message, cure := split(e.Message)
	f := finding.Finding{Rule: notCompiled, Level: finding.Error, Message: message, Cure: cure, About: e.Message}
	pointer, path, edits := e.Pointer, e.Pointer, []edit(nil)
	if u := l.useAt(o, e.Pointer); u != nil {
		path = u.where()
		// The place is in front of the message already.
		f.Message = strings.TrimPrefix(f.Message, fmt.Sprintf("%q: ", u.path.String()))
		switch {
		case strings.Contains(e.Message, saysSpelling), strings.Contains(e.Message, saysDomain):
			return // names reports it, with its fix.
		case strings.Contains(e.Message, saysNoSource):
			f.Rule, pointer = parameterNoSource, u.pointer("parameterizedBy")
		case strings.Contains(e.Message, saysTreatment) && u.ParameterTreatment != "" && u.ParameterTreatment != v1alpha1.TreatmentSlashDelimitedPrefix:
			f.Rule, pointer = treatmentUnknown, u.pointer("parameterTreatment")
			if spelling.Nearest(u.ParameterTreatment, []string{v1alpha1.TreatmentSlashDelimitedPrefix}) != "" {
				edits = o.replace(pointer, u.ParameterTreatment, v1alpha1.TreatmentSlashDelimitedPrefix)
			}
		}
	}
	if e.Unmatched {
		f.Rule, f.Level = kindUnknown, finding.Note
	}
	l.report(o, pointer, path, f, edits...)
}

// split returns the message and the cure of an error: the cure is what follows the last colon. What CEL says about an expression may have
// several lines, and comes after the cure.
func split(text string) (message, cure string) {
	if before, says, found := strings.Cut(text, " does not compile: "); found {
		return before + " does not compile", "correct the expression: " + strings.Join(strings.Fields(says), " ")
	}
	if at := lastColon(text); at >= 0 {
		return text[:at], text[at+2:]
	}
	return text, "correct the document"
}

// lastColon returns the place of the last ": " that is outside of quotation marks, -1 for none.
func lastColon(text string) int {
	at, quoted := -1, false
	for i := 0; i+1 < len(text); i++ {
		switch {
		case text[i] == '\\' && quoted:
			i++
		case text[i] == '"':
			quoted = !quoted
		case text[i] == ':' && text[i+1] == ' ' && !quoted:
			at = i
		}
	}
	return at
}

// useAt returns the entry at a pointer, nil for none.
func (l *linter) useAt(o *object, pointer string) *use {
	for _, u := range o.uses() {
		if u.Pointer == pointer {
			return u
		}
	}
	return nil
}
