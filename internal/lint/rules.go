package lint

import (
	"fmt"
	"slices"

	"github.com/fieldperm/fieldperm/internal/finding"
	"github.com/fieldperm/fieldperm/internal/lint/convention"
	"github.com/fieldperm/fieldperm/internal/spelling"
)

// These are the IDs of the rules about documents. Package convention has those about names.
const (
	notCompiled        = "not-compiled"
	kindUnknown        = "kind-not-known"
	treatmentUnknown   = "treatment-unknown"
	parameterNoSource  = "parameter-without-source"
	sourceNoUser       = "source-without-user"
	versionsDiffer     = "versions-differ"
	versionLossy       = "version-lossy"
	verbUnreachable    = "verb-unreachable"
	atomicItemVerb     = "atomic-list-with-item-verb"
	barrierNoHolder    = "barrier-without-holder"
	fieldNoVerb        = "field-without-verb"
	usesDisagree       = "type-uses-disagree"
	suppressionInvalid = "suppression-invalid"
	suppressionUnused  = "suppression-unused"
)

// offByDefault are the rules that --enable turns on.
var offByDefault = map[string]bool{fieldNoVerb: true}

// fixed are the rules that cannot be disabled or suppressed, because fieldperm refuses such a document anyway, or because they are about
// suppressions.
var fixed = map[string]bool{
	notCompiled: true, convention.VerbSpelling: true, treatmentUnknown: true, parameterNoSource: true, suppressionInvalid: true,
}

// OffByDefault reports whether a rule has to be turned on.
func OffByDefault(id string) bool { return offByDefault[id] }

// CannotBeDisabled reports whether a rule can be neither disabled nor suppressed.
func CannotBeDisabled(id string) bool { return fixed[id] }

func unknownRule(at, id string) error {
	cure := "docs/reference/lint.md has all rules"
	if near := spelling.Nearest(id, ruleIDs()); near != "" {
		cure = fmt.Sprintf("use %q", near)
	}
	return fmt.Errorf("%s: rule %q does not exist: %s", at, id, cure)
}

func ruleIDs() []string {
	var out []string
	for _, r := range Rules() {
		out = append(out, r.ID)
	}
	return out
}

// Tool returns the lint as the author of a log.
func Tool() finding.Tool {
	return finding.Tool{Name: "fieldperm-gen lint", Page: "lint.md", Fingerprint: "fieldpermLint/v1", Rules: Rules()}
}

// Rules returns all rules: about documents as a whole, names, parameters, versions, reach, barriers, coverage and suppressions.
func Rules() []finding.Rule {
	return slices.Concat(documentRules(), convention.Rules(), entryRules(), coverageRules())
}

func documentRules() []finding.Rule {
	return []finding.Rule{
		{
			ID: notCompiled, Level: finding.Error, Meaning: "fieldperm refuses the document.",
			Why:  "The message is that of fieldperm's own compiler. fieldperm-webhook does not start with such a file, and refuses such an object.",
			Cure: "Do what the message says.",
		},
		{
			ID: kindUnknown, Level: finding.Note, Meaning: "A document is about a kind or a resource that is neither built in nor in the files.",
			Why:  "Its paths and verbs could not be checked.",
			Cure: "Give the CustomResourceDefinition of the kind as well.",
		},
		{
			ID: treatmentUnknown, Level: finding.Error, Meaning: "A parameter treatment does not exist.",
			Why:  "fieldperm refuses the document.",
			Cure: "Write `slash-delimited-prefix`, or leave the treatment out. `--fix` corrects a misspelt one.",
		},
	}
}

func entryRules() []finding.Rule {
	return []finding.Rule{
		{
			ID: parameterNoSource, Level: finding.Error, Meaning: "A verb takes a parameter that nothing on the path of its field emits.",
			Why:  "fieldperm refuses the document.",
			Cure: "Put the parameter source on a map, a scalar or a key property of a list-map at or above the field. Give an atomic list keys first (`x-kubernetes-list-type: map`).",
		},
		{
			ID: sourceNoUser, Level: finding.Warning, Meaning: "A field emits a parameter that no verb at or below it takes.",
			Why:  "The source has no effect. Probably `parameterizedBy` is missing at a verb, or has another name.",
			Cure: "Let a verb take the parameter, or remove the source.",
		},
		{
			ID: versionsDiffer, Level: finding.Error, Meaning: "A field that two served versions have does not have the same verb, barrier or parameter in both.",
			Why: "One field has one verb. `fieldperm-gen crd` refuses a version that lacks the verb of another. Of two verbs both are needed where one is a barrier " +
				"([fields of several versions](../guide/schema-authors.md#fields-of-several-versions)).",
			Cure: "Write the same in each served version. `--fix` adds what a version lacks, in the keys of a schema.",
		},
		{
			ID: versionLossy, Level: finding.Warning, Meaning: "A write through a version may change fields that the version does not show.",
			Why: "Only `granular:*` covers such a write, so granular users cannot use the version, and it must pass every barrier of the kind " +
				"([C3](../semantics.md#c3-a-field-with-no-verb-but-the-roots-needs-granular-or-the-generic-permission)).",
			Cure: "Give the versions the same fields, stop serving the version, or declare that a conversion webhook loses nothing (annotation `fieldperm.dev/lossless-conversion`).",
		},
		{
			ID: verbUnreachable, Level: finding.Warning, Meaning: "No change can need the verb of a field.",
			Why:  "Another document or another form of the same document has a verb for the path, the API server writes the field by itself, or the version is neither served nor stored. A grant of the verb has no effect.",
			Cure: "Remove the entry, or change the one that takes its place.",
		},
		{
			ID: atomicItemVerb, Level: finding.Warning, Meaning: "A verb is inside of an atomic list, map or object.",
			Why: "Atomic values are charged as a whole ([D4](../semantics.md#d4-atomic-lists-maps-and-structs-are-charged-as-a-whole)): the verb of the whole covers each change, and this verb none. " +
				"Lists without `x-kubernetes-list-type` are atomic. A barrier inside counts, and is not reported.",
			Cure: "Give the list keys (`x-kubernetes-list-type: map`) or make it a set, or move the verb to the whole value.",
		},
		{
			ID: barrierNoHolder, Level: finding.Warning, Meaning: "No Role or ClusterRole of the files has the verb of a barrier.",
			Why:  "Only members of `system:masters` could change the fields. The rule needs `--roles`, or roles among the files. The verb `*` counts as a grant, because RBAC says so.",
			Cure: "Grant the verb in a role, or suppress the rule if that is meant.",
		},
	}
}

func coverageRules() []finding.Rule {
	return []finding.Rule{
		{
			ID: fieldNoVerb, Level: finding.Note, Meaning: "A field directly in `spec` has no verb, and no field below it has one.",
			Why:  "Only `granular:specification`, `granular:*` and the generic permission cover it. The rule is off by default: `--enable field-without-verb`.",
			Cure: "Give the field a verb, if some user should write it and not the rest.",
		},
		{
			ID: usesDisagree, Level: finding.Warning, Meaning: "Two fields have the same type, and the fields below do not have the same verbs.",
			Why: "CustomResourceDefinitions have no named types, so verbs of a type are written at each use, and one use is easily forgotten. The holder of a verb can then write at one place what it takes another verb for at the other. " +
				"The level is `note` if one use has no verbs at all.",
			Cure: "Write the same verbs at each use. In Go, put the markers on the type.",
		},
		{
			ID: suppressionInvalid, Level: finding.Error, Meaning: "A suppression has no reason, or names a rule that does not exist or cannot be suppressed.",
			Why:  "A suppression without a reason cannot be reviewed, and one that does not work hides that the finding is still there.",
			Cure: "Write `# fieldperm:lint disable=RULE reason`, or the annotation `fieldperm.dev/lint-disable: RULE reason`.",
		},
		{
			ID: suppressionUnused, Level: finding.Note, Meaning: "A suppression suppresses nothing.",
			Why:  "It would hide a later finding that nobody has looked at.",
			Cure: "Remove it.",
		},
	}
}
