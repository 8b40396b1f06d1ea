package audit

import (
	"fmt"
	"slices"

	"k8s.io/apiserver/pkg/authentication/user"
)

// holders applies the rules barrier-without-holder and barrier-held-by-everybody.
func (j *joint) holders(report func(Finding)) {
	for i := range j.Known.barriers {
		b := &j.Known.barriers[i]
		if b.BuiltIn {
			continue
		}
		held := false
		for k := range j.bindings {
			binding := &j.bindings[k]
			role := j.roles[binding.role]
			if role == nil || !slices.ContainsFunc(role.rules, func(r keptRule) bool { return j.Known.passes(b, &r, binding.Namespace != "") }) {
				continue
			}
			for at, of := range binding.subjects {
				if binding.isOwn(of) {
					continue
				}
				held = true
				if of.isEverybody() {
					report(binding.at(Finding{
						Rule: barrierEverybody, Level: Error, Object: binding.Ref, Path: fmt.Sprintf("subjects[%d]", at), About: b.Verb.String() + " " + b.Object.String(),
						Message: fmt.Sprintf("every user of %s passes the barrier %s of %s (%s) by %s", of, b.Verb, listOf(b.Resources), b.Object, role),
						Cure:    "take the verb from the group",
					}))
				}
			}
		}
		if !held && j.complete() {
			level := Warning
			if j.Files {
				level = Note
			}
			report(b.at(Finding{
				Rule: barrierNobody, Level: level, Object: b.Object, Path: b.Path, About: b.Verb.String(),
				Message: fmt.Sprintf("no subject holds %q on %s, so that only members of %s can change what is behind the barrier", b.Verb, listOf(b.Resources), user.SystemPrivilegedGroup),
				Cure:    "grant the verb, or keep the barrier if that is meant",
			}))
		}
	}
}
