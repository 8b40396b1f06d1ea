package convention

import "strings"

// words splits a name in camelCase into its words, in lower case. Several capitals in sequence are one word: "hostIPC" is host, ipc.
func words(name string) []string {
	var out []string
	start := 0
	isUpper := func(i int) bool { return name[i] >= 'A' && name[i] <= 'Z' }
	for i := 1; i < len(name); i++ {
		begins := isUpper(i) && (!isUpper(i-1) || i+1 < len(name) && !isUpper(i+1))
		if begins {
			out = append(out, strings.ToLower(name[start:i]))
			start = i
		}
	}
	if name != "" {
		out = append(out, strings.ToLower(name[start:]))
	}
	return out
}

// camel joins words into a name in lowerCamelCase.
func camel(words []string) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 && w != "" {
			w = strings.ToUpper(w[:1]) + w[1:]
		}
		b.WriteString(w)
	}
	return b.String()
}

// singular returns the singular of a plain English plural.
func singular(word string) string {
	switch {
	case strings.HasSuffix(word, "ies") && len(word) > 4:
		return strings.TrimSuffix(word, "ies") + "y"
	case strings.HasSuffix(word, "sses"), strings.HasSuffix(word, "xes"), strings.HasSuffix(word, "ches"), strings.HasSuffix(word, "shes"):
		return strings.TrimSuffix(word, "es")
	case strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss") && len(word) > 2:
		return strings.TrimSuffix(word, "s")
	}
	return word
}

// sameWord reports whether two words are equal but for their number.
func sameWord(a, b string) bool { return singular(a) == singular(b) }

// startsWith reports whether one list of words starts with another, but for the number of each word.
func startsWith(all, first []string) bool {
	if len(first) == 0 || len(first) > len(all) {
		return false
	}
	for i, w := range first {
		if !sameWord(all[i], w) {
			return false
		}
	}
	return true
}

// actions are verbs of English that are no nouns, or that as a noun mean an action on an object.
var actions = set(`accept add allow apply approve assign attach bind block call can change check choose configure connect control create decrease
	delete deny deploy destroy detach disable do drop edit enable ensure exec execute expose forbid force get grant has have increase install is
	launch let list make manage may modify move must override patch pause permit provision put read reconcile reject remove rename replace resize
	restore resume revoke run set should show skip start stop suspend switch toggle trigger uninstall unset update use view write`)

// prefixes are those of the actions that begin no compound noun. "startOrder" is an order, but "enableOrder" is none.
var prefixes = set(`add allow can change configure deny disable edit enable ensure forbid get grant has have is make may modify must remove set should
	toggle unset update`)

// adjectives are words that say how something is. A verb that ends in one names a state and no concept.
var adjectives = set(`able active allowed automatic autoscaled blocked critical dangerous disabled dry editable enabled encrypted external forbidden hidden immutable insecure internal isolated locked managed mutable optional paused permitted privileged protected public readonly
	required restricted running safe secure shared stopped suspended unsafe unschedulable visible writable`)

func set(text string) map[string]bool {
	out := map[string]bool{}
	for _, word := range strings.Fields(text) {
		out[word] = true
	}
	return out
}
