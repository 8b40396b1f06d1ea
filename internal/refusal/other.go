package refusal

import "strings"

// Other says what a text without a refusal may be.
func Other(text string) string {
	for _, known := range []struct{ part, is string }{
		{"ValidatingAdmissionPolicy", "a ValidatingAdmissionPolicy refused the write: its message has the reason"},
		{"denied the request", "another webhook refused the write: ask its owner"},
		{"failed calling webhook", "a webhook of another program could not be called: ask its owner"},
		{"exceeded quota", "a ResourceQuota refused the write"},
		{"is invalid:", "the object is not valid: correct the fields that the message names"},
		{"Conflict", "another client changed the object meanwhile: read it again, and repeat the change"},
		{"Unauthorized", "the client is not authenticated: renew its credentials"},
		{"(NotFound)", "the object does not exist"},
		{" is forbidden: ", "another check of kube-apiserver refused the write: its message has the reason"},
	} {
		if strings.Contains(text, known.part) {
			return "the text has no refusal of fieldperm or of missing permission; maybe " + known.is
		}
	}
	return "the text has no refusal of fieldperm or of missing permission: give the whole message, as the client printed it"
}
