package convention

import "github.com/fieldperm/fieldperm/internal/finding"

// These are the IDs of the rules about the name of a verb, and about fields by their name.
const (
	VerbSpelling      = "verb-spelling"
	VerbNotANoun      = "verb-not-a-noun"
	VerbNamesPath     = "verb-names-path"
	VerbRepeats       = "verb-repeats-ancestor"
	VerbNotRegistered = "verb-not-registered"
	ReservedDomain    = "reserved-domain"
	DomainNotOfGroup  = "domain-not-of-group"
	NearDuplicate     = "verb-near-duplicate"
	PowerByName       = "power-by-name"
)

// Rules returns the rules of this package.
func Rules() []finding.Rule {
	return []finding.Rule{
		{
			ID: VerbSpelling, Level: finding.Error, Meaning: "The name of a verb does not follow the grammar: lowerCamelCase, with or without a domain before it.",
			Why:  "fieldperm refuses the document. Verbs are compared letter by letter, so one spelling has to be right.",
			Cure: "Write the verb as the message says. `--fix` does it in a schema, a PermissionSchema and a Go marker.",
		},
		{
			ID: VerbNotANoun, Level: finding.Warning, Meaning: "The name of a verb is an action or an adjective.",
			Why:  "A verb of fieldperm names what may be written, and its holder may write it to any value: `enable` would also let its holder disable. KEP-3617 asks for nouns.",
			Cure: "Name the concept: `suspension`, not `suspend` or `suspended`.",
		},
		{
			ID: VerbNamesPath, Level: finding.Warning, Meaning: "The name of a verb is the path of its field.",
			Why:  "A verb names a concept, so that the same concept has the same verb in another kind and under another parent.",
			Cure: "Name the concept: `nodeAssignment`, not `podNodeName`.",
		},
		{
			ID: VerbRepeats, Level: finding.Warning, Meaning: "The name of a verb begins with the name of its kind, or of a field above it.",
			Why:  "The authorizer is told the resource anyway, and a verb that names its parent cannot be used under another one.",
			Cure: "Leave the name of the parent out.",
		},
		{
			ID: VerbNotRegistered, Level: finding.Warning, Meaning: "A verb without a domain is not one of the well-known verbs.",
			Why: "Names without a domain belong to Kubernetes and to the registry that all share. Another author can use the same name for something else, and a later version of Kubernetes too. " +
				"A holder of the verb on `*` would then hold both.",
			Cure: "Use a [well-known verb](verbs.md) if there is one for the concept. Give the verb a domain that you own otherwise, such as `example.com/budget`, or list it in a file for `--registry`.",
		},
		{
			ID: ReservedDomain, Level: finding.Error, Meaning: "A third party uses a domain of Kubernetes or of fieldperm: `kubernetes.io`, `k8s.io`, `fieldperm.dev`, or one below them.",
			Why:  "Only the owner of a domain may give names in it. A later version of Kubernetes or of fieldperm may use the same verb for something else.",
			Cure: "Use a domain that you own. A definition may use the domain of its own API group.",
		},
		{
			ID: DomainNotOfGroup, Level: finding.Warning, Meaning: "The domain of a verb is neither the API group of the kind nor a domain above or below it.",
			Why:  "The verb may belong to another author, who can change what it means.",
			Cure: "Use the API group of the kind, or list the verb in a file for `--registry` if it is shared.",
		},
		{
			ID: NearDuplicate, Level: finding.Note, Meaning: "Two verbs differ in one letter or in their number, or a verb repeats a well-known verb with a domain.",
			Why:  "One concept should have one verb. An administrator who grants the one means the other as well.",
			Cure: "Use the same verb at both places, or a name that differs more.",
		},
		{
			ID: PowerByName, Level: finding.Warning, Meaning: "A field has a power by its name, such as `image` or `secretRef`, and no verb of its own.",
			Why: "A holder of the verb above the field has the power too, and cannot be given the rest without it. " +
				"The level is `note` if a verb more specific than `specification` covers the field.",
			Cure: "Give the field a verb of its own, and think about `excluded: true`. The message names the well-known verb, if there is one. Suppress the rule where the field has another meaning.",
		},
	}
}

// These are the IDs of the rules that only the analyzer of Go types has.
const (
	MarkerInvalid     = "marker-invalid"
	MarkerMisplaced   = "marker-misplaced"
	MarkerTwice       = "marker-twice"
	MarkerWithoutVerb = "marker-without-verb"
)

// GoRules returns the rules about markers in Go types, which only the analyzer has.
func GoRules() []finding.Rule {
	return []finding.Rule{
		{
			ID: MarkerInvalid, Level: finding.Error, Meaning: "A permission marker has a mistake, or a comment is probably meant as one.",
			Why:  "A marker that is not read may be a barrier that is not there.",
			Cure: "Write the marker as the message says. `-fix` corrects the name of a misspelt marker.",
		},
		{
			ID: MarkerMisplaced, Level: finding.Error, Meaning: "A permission marker is where it has no effect: not above a type or a field, above a field that is not in JSON, above an inline field, or in a block comment.",
			Why:  "The verb or the barrier is not in the definition that is generated.",
			Cure: "Put the marker on a line of its own, directly above a type or above an exported field with a name in JSON.",
		},
		{
			ID: MarkerTwice, Level: finding.Error, Meaning: "A type or a field has the same permission marker twice.",
			Why:  "A field has one verb, and one condition for its barrier.",
			Cure: "Keep one of them.",
		},
		{
			ID: MarkerWithoutVerb, Level: finding.Error, Meaning: "A field has a barrier or a parameter, and neither the field nor its type has a verb.",
			Why:  "There is no verb to exclude or to parameterize. fieldperm refuses the definition that is generated.",
			Cure: "Add `+permission-verb`.",
		},
	}
}
