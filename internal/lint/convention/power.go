package convention

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/internal/finding"
)

// Power is what the name of a field says about the effect of writing it.
type Power struct {
	// Word is one of the words of schema.Power.
	Word string
	// Effect is what a holder of the verb could do, for the middle of a sentence.
	Effect string
	// Verb is the well-known verb of such a field, "" if there is none.
	Verb string
}

// These are the effects.
const (
	runsCode   = "run code of its choice"
	readsHere  = "read Secrets through the controller, by naming them"
	escalates  = "act with the permissions of an account of its choice"
	leavesHost = "leave the confinement of a container"
	redirects  = "lead connections to a place of its choice"
	trusts     = "let the controller trust a certificate authority of its choice"
	places     = "decide on which nodes Pods run"
	deletes    = "have objects or stored data deleted"
	unchecks   = "turn off a check"
)

// powers are fields by their name.
var powers = map[string]Power{
	"image": {"runsCode", runsCode, "image"}, "images": {"runsCode", runsCode, "image"}, "imageRef": {"runsCode", runsCode, "image"},
	"command": {"runsCode", runsCode, "command"}, "args": {"runsCode", runsCode, "command"}, "extraArgs": {"runsCode", runsCode, "command"}, "entrypoint": {"runsCode", runsCode, "command"},
	"script": {"runsCode", runsCode, ""}, "scripts": {"runsCode", runsCode, ""}, "initScript": {"runsCode", runsCode, ""}, "postInstall": {"runsCode", runsCode, ""},
	"env": {"runsCode", runsCode, "environment"}, "envFrom": {"readsSecrets", readsHere, "environment"},
	"template": {"runsCode", runsCode, "template"}, "podTemplate": {"runsCode", runsCode, "template"}, "podSpec": {"runsCode", runsCode, "template"}, "jobTemplate": {"runsCode", runsCode, "runTemplate"},
	"containers": {"runsCode", runsCode, "containers"}, "initContainers": {"runsCode", runsCode, "initContainers"}, "sidecars": {"runsCode", runsCode, "containers"},
	"volumes": {"readsSecrets", readsHere, "volumes"}, "extraVolumes": {"readsSecrets", readsHere, "volumes"},
	"secret": {"readsSecrets", readsHere, ""}, "secrets": {"readsSecrets", readsHere, ""}, "credentials": {"readsSecrets", readsHere, ""}, "valuesFrom": {"readsSecrets", readsHere, ""},
	"serviceAccount": {"escalates", escalates, "workloadIdentity"}, "roleRef": {"escalates", escalates, "roleRef"}, "clusterRole": {"escalates", escalates, ""},
	"subjects": {"escalates", escalates, "subjects"}, "impersonate": {"escalates", escalates, ""}, "impersonation": {"escalates", escalates, ""}, "kubeConfig": {"escalates", escalates, ""}, "kubeconfig": {"escalates", escalates, ""},
	"hostPath": {"disablesProtection", leavesHost, "hostFilesystem"}, "hostNetwork": {"disablesProtection", leavesHost, "hostNamespaces"},
	"hostPID": {"disablesProtection", leavesHost, "hostNamespaces"}, "hostIPC": {"disablesProtection", leavesHost, "hostNamespaces"},
	"privileged": {"disablesProtection", leavesHost, "securityContext"}, "securityContext": {"disablesProtection", leavesHost, "securityContext"},
	"podSecurityContext": {"disablesProtection", leavesHost, "securityContext"}, "capabilities": {"disablesProtection", leavesHost, "securityContext"},
	"insecure": {"disablesProtection", unchecks, ""}, "insecureSkipTLSVerify": {"disablesProtection", unchecks, "tlsVerification"}, "insecureSkipVerify": {"disablesProtection", unchecks, "tlsVerification"},
	"url": {"redirectsTraffic", redirects, ""}, "clientConfig": {"redirectsTraffic", redirects, "backend"}, "webhook": {"redirectsTraffic", redirects, "backend"}, "webhookURL": {"redirectsTraffic", redirects, "backend"},
	"endpoint": {"redirectsTraffic", redirects, ""}, "caBundle": {"redirectsTraffic", trusts, "trustBundle"},
	"nodeName": {"placesPods", places, "nodeAssignment"}, "nodeSelector": {"placesPods", places, "nodeSelection"}, "tolerations": {"placesPods", places, "tolerations"}, "affinity": {"placesPods", places, "affinity"},
	"reclaimPolicy": {"deletes", deletes, "reclaimPolicy"}, "deletionPolicy": {"deletes", deletes, ""}, "prune": {"deletes", deletes, ""},
}

// suffixes are ends of the names of fields. The first that fits counts.
var suffixes = []struct {
	end string
	Power
}{
	{"SecretRef", Power{"readsSecrets", readsHere, ""}}, {"SecretName", Power{"readsSecrets", readsHere, ""}}, {"SecretKeyRef", Power{"readsSecrets", readsHere, ""}},
	{"SecretReference", Power{"readsSecrets", readsHere, ""}},
	{"ServiceAccountName", Power{"escalates", escalates, "workloadIdentity"}}, {"ServiceAccountRef", Power{"escalates", escalates, "workloadIdentity"}},
	{"CABundle", Power{"redirectsTraffic", trusts, "trustBundle"}},
}

// PowerOf returns the power that a field has by its name.
func PowerOf(field string) (Power, bool) {
	if p, ok := powers[field]; ok {
		return p, true
	}
	for _, s := range suffixes {
		if strings.HasSuffix(field, s.end) || field == strings.ToLower(s.end[:1])+s.end[1:] {
			return s.Power, true
		}
	}
	return Power{}, false
}

// Unguarded returns the problem of a field that has a power by its name and no verb of its own. coveredBy is the verb above it, "" for none
// but those of the root and of every kind (specification).
func Unguarded(field, coveredBy string) (Problem, bool) {
	power, ok := PowerOf(field)
	if !ok {
		return Problem{}, false
	}
	p := Problem{Rule: PowerByName, Level: finding.Warning, Cure: "give it a verb of its own"}
	if power.Verb != "" {
		p.Cure = fmt.Sprintf("give it a verb of its own, such as the well-known %q", power.Verb)
	}
	holder := `a verb above it, such as "specification",`
	if coveredBy != "" {
		p.Level, holder = finding.Note, fmt.Sprintf("%q", coveredBy)
	}
	p.Message = fmt.Sprintf("field %q has no verb of its own: a holder of %s can %s (%s)", field, holder, power.Effect, power.Word)
	return p, true
}

// Fits reports whether the type of a field fits what its name says: a number that is called image is none, and a template that is a text is no
// template of a Pod. typ is a word of OpenAPI: string, boolean, integer, number, or anything else.
func Fits(field, typ string) bool {
	switch typ {
	case "boolean":
		return slices.Contains([]string{"privileged", "hostNetwork", "hostPID", "hostIPC", "insecure", "insecureSkipTLSVerify", "insecureSkipVerify", "prune"}, field)
	case "integer", "number":
		return false
	case "string":
		return !slices.Contains([]string{"template", "podTemplate", "jobTemplate", "podSpec"}, field)
	}
	return true
}
