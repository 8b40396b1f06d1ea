package tighten

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/internal/rbac"
)

const operator = "system:serviceaccount:ops:operator"

func mustSubject(t *testing.T, text string) Subject {
	t.Helper()
	s, err := ParseSubject(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func grants(t *testing.T, yaml string) *rbac.Grants {
	t.Helper()
	g, err := rbac.Decode("test", []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return &g
}

// line returns an event of the operator. fields is "-" for an event without the annotation.
func line(resource, subresource, namespace, name, fields string, more ...string) string {
	annotations := `{"authorization.k8s.io/decision":"allow"}`
	if fields != "-" {
		annotations = fmt.Sprintf(`{"authorization.k8s.io/decision":"allow","observations.fieldperm.dev/fields":%q}`, fields)
	}
	group, resource, _ := strings.Cut(resource, "/")
	event := fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"7c1f0a3e-0000-4000-8000-000000000000","stage":"ResponseComplete",`+
		`"requestURI":"/apis/apps/v1/namespaces/%[3]s/%[2]s/%[4]s?fieldManager=operator","verb":"update","user":{"username":"system:serviceaccount:ops:operator","uid":"1","groups":["system:serviceaccounts","system:serviceaccounts:ops","system:authenticated"]},`+
		`"sourceIPs":["10.0.0.1"],"userAgent":"operator/v1","objectRef":{"resource":%[2]q,"namespace":%[3]q,"name":%[4]q,"uid":"u-%[4]s","apiGroup":%[1]q,"apiVersion":"v1","subresource":%[5]q},`+
		`"responseStatus":{"metadata":{},"code":200},"requestReceivedTimestamp":"2026-11-23T10:00:00.000000Z","stageTimestamp":"2026-11-23T10:00:00.010000Z","annotations":%[6]s}`,
		group, resource, namespace, name, subresource, annotations)
	for i := 0; i+1 < len(more); i += 2 {
		if !strings.Contains(event, more[i]) {
			panic(more[i])
		}
		event = strings.Replace(event, more[i], more[i+1], 1)
	}
	return event + "\n"
}

// collect reads a log into evidence.
func collect(t *testing.T, subject, log string) (*Evidence, LogCounts) {
	t.Helper()
	e := &Evidence{Names: true}
	l := Log{Subject: mustSubject(t, subject), Visit: e.Collect}
	if err := l.Read(t.Context(), strings.NewReader(log)); err != nil {
		t.Fatal(err)
	}
	return e, l.Counts
}

// decides is as with a discovery that serves apps, batch, and an aggregated group.
func decides(r Resource) Decides {
	switch {
	case strings.HasSuffix(r.Name, "/finalizers"), r.Group == "metrics.example.com":
		return DecidesNot
	case r.Group == "gone.example.com":
		return DecidesUnserved
	}
	return DecidesYes
}

// propose proposes with the decisions above, and fails if the proposal has new access.
func propose(t *testing.T, subject string, objects *rbac.Grants, log string, change ...func(*Options)) *Proposal {
	t.Helper()
	e, _ := collect(t, subject, log)
	options := Options{Namespaces: HeldReach, Names: HeldReach, Decides: decides, Barriers: &Barriers{Unknown: true}}
	for _, f := range change {
		f(&options)
	}
	p, err := Propose(mustSubject(t, subject), objects, e, options)
	if err != nil {
		t.Fatal(err)
	}
	if more := Prove(p, objects, nil, options.Barriers).New; len(more) > 0 && !options.AllowNew {
		t.Fatalf("the proposal has new access: %q", more)
	}
	return p
}

// text returns the diffs of a proposal.
func diffs(t *testing.T, p *Proposal) string {
	t.Helper()
	out, err := p.Diffs()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func has(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
}
