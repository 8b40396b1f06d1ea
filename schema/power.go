package schema

import (
	"slices"
)

// Power is something that a verb lets its holder do beyond writing the field that it guards.
type Power string

// These are all powers; documents can use no others.
const (
	RunsCode           Power = "runsCode"
	ReadsSecrets       Power = "readsSecrets"
	Deletes            Power = "deletes"
	PlacesPods         Power = "placesPods"
	RedirectsTraffic   Power = "redirectsTraffic"
	Escalates          Power = "escalates"
	DisablesProtection Power = "disablesProtection"
)

// AllPowers returns all powers in the order in which they are shown.
func AllPowers() []Power {
	return []Power{RunsCode, ReadsSecrets, Escalates, DisablesProtection, Deletes, RedirectsTraffic, PlacesPods}
}

// Sentence returns a sentence that explains the power, "" for a word that is not a power.
func (p Power) Sentence() string {
	switch p {
	case RunsCode:
		return "The holder has code of their choice run, in a container, on a node or by a component of the cluster."
	case ReadsSecrets:
		return "The holder gets at the content of Secrets, or at a token of a service account, that they could not read."
	case Deletes:
		return "The holder has objects or stored data deleted, without the verb delete."
	case PlacesPods:
		return "The holder decides on which nodes Pods run, or that they run nowhere."
	case RedirectsTraffic:
		return "The holder leads connections of others to a place of their choice, or lets them reach what they did not."
	case Escalates:
		return "The holder gives themselves or others permissions or an identity that they do not have."
	case DisablesProtection:
		return "The holder turns off or weakens a check, a confinement or a limit."
	}
	return ""
}

// OrderedPowers returns the powers in the order of AllPowers, each once.
func OrderedPowers(powers []Power) []Power {
	var out []Power
	for _, p := range AllPowers() {
		if slices.Contains(powers, p) {
			out = append(out, p)
		}
	}
	return out
}

// Worth returns the powers of a verb of the node: its own, and those of all fields below that it covers, in the order of AllPowers.
func (n *Node) Worth(p *Permission) []Power {
	return OrderedPowers(slices.Concat(p.parts.Powers, n.parts.Powers))
}
