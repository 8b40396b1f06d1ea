package configfile

import "testing"

func TestLineOfAKey(t *testing.T) {
	const text = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer: &first
    audiences: [a]
    url: https://one
- issuer: *first
anonymous:
  enabled: false
`
	for key, want := range map[string]int{
		"jwt[0].issuer.url":           6,
		"jwt[0].issuer.discoveryURL":  4,
		"jwt[1].issuer.url":           6,
		"jwt[9].issuer.url":           3,
		"jwt[1].issuer[0]":            7,
		"anonymous":                   8,
		"":                            1,
		"nothing":                     1,
		"jwt[0].issuer.audiences[0].": 5,
	} {
		if got := NewProblem("f", []byte(text), key, "", "").Line; got != want {
			t.Errorf("line of %q is %d, want %d", key, got, want)
		}
	}
	if got := NewProblem("f", []byte("\t:"), "jwt", "", "").Line; got != 1 {
		t.Errorf("line in a text that is no YAML is %d, want 1", got)
	}
	if got := NewProblem("f", []byte("{\"kind\": \"x\",\n\"jwt\": [{\"issuer\":\n{\"url\": \"y\"}}]}"), "jwt[0].issuer.url", "", "").Line; got != 3 {
		t.Errorf("line in JSON is %d, want 3", got)
	}
}
