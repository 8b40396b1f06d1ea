package tighten

import (
	"strconv"
	"strings"

	"github.com/fieldperm/fieldperm/verbs"
)

const (
	// fieldsSuffix ends the key of the audit annotation with the verbs of the changed fields. Before it is the first label of a webhook's
	// name.
	fieldsSuffix = ".fieldperm.dev/fields"
	// markedFields is that key of the webhook granular.
	markedFields = "granular" + fieldsSuffix
	// cutMark begins the end of a list that was cut, with the number of verbs that were left out.
	cutMark = "…+"
	// noVerb is in the list for a change that no verb can cover.
	noVerb = "none"
)

// fields is the value of an audit annotation with the verbs of the changed fields.
type fields struct {
	verbs []string
	// cut is how many verbs were left out. none: a change that no verb can cover. faulty: entries that are no verbs.
	cut    int64
	none   bool
	faulty int
}

// parseFields reads the list. It uses the memory of list.
func parseFields(text string, list []string) fields {
	out := fields{verbs: list[:0]}
	for text != "" {
		var entry string
		entry, text, _ = strings.Cut(text, ",")
		if rest, ok := strings.CutPrefix(entry, cutMark); ok && text == "" {
			n, err := strconv.ParseInt(rest, 10, 32)
			if err != nil || n < 1 {
				out.faulty++
				n = 1
			}
			out.cut = n
			continue
		}
		if entry == noVerb {
			out.none = true
			continue
		}
		if _, err := verbs.Parse(entry); err != nil || entry == verbs.Marker {
			out.faulty++
			continue
		}
		out.verbs = append(out.verbs, entry)
	}
	return out
}
