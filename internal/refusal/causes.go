package refusal

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/verbs"
)

// Check is the check that failed.
type Check string

// The checks.
const (
	CheckVerb        Check = "verb"
	CheckBarrier     Check = "barrier"
	CheckMarker      Check = "marker"
	CheckPermission  Check = "permission"
	CheckDeny        Check = "deny"
	CheckCondition   Check = "condition"
	CheckLimit       Check = "limit"
	CheckNoVerb      Check = "noVerb"
	CheckVersion     Check = "version"
	CheckOwnership   Check = "ownership"
	CheckMutation    Check = "mutation"
	CheckEnforcement Check = "enforcement"
	CheckFailure     Check = "failure"
	CheckUnclear     Check = "unclear"
)

// Cause is why a write was refused, and what to do.
type Cause struct {
	Check Check `json:"check"`
	// Why is a sentence.
	Why string `json:"why"`
	// Do is what to do.
	Do string `json:"do"`
	// Rule is the rule of docs/semantics.md, "" if there is none.
	Rule string `json:"rule,omitempty"`
}

// Causes returns why the write was refused, the most important first.
func (r *Refusal) Causes() []Cause {
	switch {
	case r.Unclear:
		return []Cause{{CheckUnclear, "fieldperm refused the write; the rest of the text is cut or is not what fieldperm writes", "run kubectl fieldperm review on the write", ""}}
	case r.Origin == FromFailure:
		return []Cause{r.failed()}
	case r.NotProven:
		return []Cause{{
			CheckEnforcement, "the user holds what is needed to be let in, but enforcement is not proven", "grant nothing; run kubectl fieldperm status, which shows why, and try again", "A5",
		}}
	case r.LacksGet:
		return []Cause{{
			CheckPermission, "fieldperm lets nobody in to write who may not read: kube-apiserver reads the object for the user before admission", "hold get on " + r.Resource, "A7",
		}}
	case r.Origin == FromAuthorization:
		return []Cause{r.unauthorized()}
	}
	var out []Cause
	if r.Deny != nil {
		out = append(out, Cause{CheckDeny, fmt.Sprintf("authorizer %q denies %s", r.Deny.Authorizer, r.Deny.Verb), "no grant helps: ask the owner of that authorizer, or of the policy that it names", "K5"})
	}
	if len(r.Unmet) > 0 {
		out = append(out, Cause{CheckCondition, "a verb would be allowed under a condition that is not met", "change the write so that the condition is true, or hold the verb without a condition", "K8"})
	}
	if r.Field == "" {
		if len(r.Needs) > 0 && r.OrGranular {
			out = append(out, Cause{CheckMarker, "the user holds neither the generic permission nor the marker granular", "hold granular and the verbs of the changed fields", "C1"})
		} else if len(r.Needs) > 0 {
			out = append(out, Cause{CheckPermission, "no granular verb covers this action", "hold " + strings.Join(r.Needs, " or "), "C4"})
		}
		return out
	}
	return append(out, r.uncovered()...)
}

// uncovered returns why a field is not covered.
func (r *Refusal) uncovered() []Cause {
	var out []Cause
	one := strings.Join(r.Needs, ", ")
	switch {
	case r.MaxChecks > 0:
		out = append(out, Cause{CheckLimit, fmt.Sprintf("the write needs more than %d permission checks", r.MaxChecks), "hold a verb that covers many of the fields, or change fewer fields at once", "P3"})
	case r.NoVerb:
		out = append(out, Cause{CheckNoVerb, "no verb covers the change", "read the advice; no grant helps", "C2"})
	case r.Barred():
		out = append(out, Cause{CheckBarrier, "the field is behind a barrier: update and more general verbs do not count", "hold one of " + one, "C2"})
	case r.Change == "existence":
		out = append(out, Cause{CheckVerb, "no verb of the user lets it create the object, whatever fields it has", "hold one of " + one, "C5"})
	case len(r.Needs) > 0:
		out = append(out, Cause{CheckVerb, "no verb of the user covers the field", "hold one of " + one, "C1"})
	}
	if r.Change == "owners" {
		out = append(out, Cause{CheckOwnership, "the owner of the field changes, not its value", "apply fewer fields, or keep metadata.managedFields as it is", "D8"})
	}
	if r.Advice != "" {
		out = append(out, Cause{CheckVersion, "the write may change what it does not show", r.Advice, "C3"})
	}
	if r.Unattributed {
		out = append(out, Cause{CheckMutation, "a default of the API server, a mutating webhook or a policy made the change, not the request", "set the field in the request, or except the change or the user in the webhook or policy", "D12"})
	}
	return out
}

// Barred reports whether the verbs say that a barrier holds. Without one the most general verb is granular:*.
func (r *Refusal) Barred() bool {
	return r.Field != "" && r.MaxChecks == 0 && len(r.Needs) > 0 && !slices.Contains(r.Needs, verbs.All().String())
}

// IsWrite reports whether fieldperm can let the user in for the verb of the request.
func (r *Refusal) IsWrite() bool {
	return r.Verb == "create" || r.Verb == "update" || r.Verb == "patch"
}

func (r *Refusal) unauthorized() Cause {
	if strings.HasPrefix(r.Verb, verbs.Marker) || !r.IsWrite() {
		return Cause{CheckPermission, fmt.Sprintf("no authorizer of kube-apiserver allows %s", r.Verb), "hold " + r.Verb + " on " + r.Resource, ""}
	}
	return Cause{
		CheckMarker, fmt.Sprintf("no authorizer of kube-apiserver allows %s: the user holds neither it nor the marker granular on %s, or kube-apiserver does not ask fieldperm about it", r.Verb, r.Resource),
		"hold granular and the verbs of the fields on this resource (kubectl fieldperm explain), or " + r.Verb, "C1",
	}
}

func (r *Refusal) failed() Cause {
	return Cause{CheckFailure, "fieldperm did not decide: " + r.Reason, "try again; if it stays so, run kubectl fieldperm status", "P4"}
}
