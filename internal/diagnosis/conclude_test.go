package diagnosis

import (
	"strings"
	"testing"
	"time"
)

func replicas(ready ...bool) []Replica {
	var out []Replica
	for i, is := range ready {
		out = append(out, Replica{Name: "fieldperm-system/" + string(rune('a'+i)), Ready: is, Message: "CrashLoopBackOff"})
	}
	return out
}

func proofs(states ...State) []Proof {
	var out []Proof
	for i, state := range states {
		out = append(out, Proof{Replica: "fieldperm-system/" + string(rune('a'+i)), State: state, Message: map[State]string{NotProven: "a probe passed admission"}[state]})
	}
	return out
}

var (
	now     = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	closed  = Event{Replica: "a", Time: now, State: Proven, Cause: "proven", Message: "Enforcement is proven"}
	opened  = Event{Replica: "a", Time: now, State: NotProven, Cause: "manifests_loose", Message: "loose"}
	through = Resource{Resource: "configmaps", User: "u", State: Proven}
	refused = Resource{Resource: "configmaps", User: "u", State: Unknown, Refused: true, LetsIn: true}
	absent  = Resource{Resource: "widgets.example.com", User: "u", State: Unknown, Refused: true}
	barred  = Resource{Resource: "configmaps", User: "u", State: NotProven, Refused: true, Message: "is not let through"}
	updates = Resource{Resource: "configmaps", User: "u", State: Unknown}
)

// TestConclude_ProvenTakesEvidenceOfThePresentForAll: a wrong yes is the worst answer. An Event alone, one of two replicas, or one of two
// kube-apiservers is no proof.
func TestConclude_ProvenTakesEvidenceOfThePresentForAll(t *testing.T) {
	one, two := []string{"10.0.0.1:6443"}, []string{"10.0.0.1:6443", "10.0.0.2:6443"}
	own := replicas(true)
	own[0].OwnServerOnly = true
	for name, test := range map[string]struct {
		status Status
		want   State
		reason string
	}{
		"every replica":                                 {Status{Replicas: replicas(true, true), Proofs: proofs(Proven, Proven)}, Proven, "every replica"},
		"one of two replicas says so":                   {Status{Replicas: replicas(true, true), Proofs: proofs(Proven, Unknown)}, Unknown, "1 of 2"},
		"a replica was not asked":                       {Status{Replicas: replicas(true, true), Proofs: proofs(Proven)}, Unknown, "1 of 2"},
		"one of two replicas has no proof":              {Status{Replicas: replicas(true, true), Proofs: proofs(Proven, NotProven)}, NotProven, "a probe passed admission"},
		"the only kube-apiserver lets through":          {Status{Servers: one, Resources: []Resource{through}}, Proven, "the only kube-apiserver"},
		"one of two kube-apiservers lets through":       {Status{Servers: two, Resources: []Resource{through}}, Unknown, "of the others"},
		"the kube-apiservers are not known":             {Status{Resources: []Resource{through}}, Unknown, "of the others"},
		"one resource is refused for want of a proof":   {Status{Servers: one, Resources: []Resource{through, barred}}, NotProven, "is not let through"},
		"every resource is refused without reason":      {Status{Servers: one, Resources: []Resource{refused}}, NotProven, "gives no reason"},
		"resources on which fieldperm lets no user in":  {Status{Servers: one, Resources: []Resource{absent}}, Unknown, "nothing could be read"},
		"one of them beside one that should be let in":  {Status{Servers: one, Resources: []Resource{absent, refused}}, NotProven, "gives no reason"},
		"a user who may update says nothing":            {Status{Servers: one, Resources: []Resource{updates}}, Unknown, "nothing could be read"},
		"a replica of its own server beside two":        {Status{Servers: two, Replicas: own, Proofs: proofs(Proven)}, Unknown, "1 of 1"},
		"a replica of its own server beside one":        {Status{Servers: one, Replicas: own, Proofs: proofs(Proven)}, Proven, "every replica"},
		"a replica of its own server, servers unknown":  {Status{Replicas: own, Proofs: proofs(Proven)}, Unknown, "1 of 1"},
		"an Event alone":                                {Status{Events: []Event{closed}, Webhooks: []Webhook{{}}}, Unknown, "2026-11-25T12:00:00Z"},
		"an Event against it alone":                     {Status{Events: []Event{opened}, Webhooks: []Webhook{{}}}, Unknown, "loose"},
		"no replica is ready":                           {Status{Replicas: replicas(false), Events: []Event{closed}}, NotProven, "no replica"},
		"a loose webhook counts more than all replicas": {Status{Replicas: replicas(true), Proofs: proofs(Proven), Webhooks: []Webhook{{Fault: "has not failurePolicy Fail"}}}, NotProven, "failurePolicy"},
	} {
		s := test.status
		s.Conclude(Installed{Kinds: true, All: true})
		if s.State != test.want || !strings.Contains(s.Reason, test.reason) {
			t.Errorf("%s: %s, %s", name, s.State, s.Reason)
		}
		if (s.State == Proven) != (len(s.Causes) == 0) || len(s.Causes) > 3 {
			t.Errorf("%s: %s with %d causes", name, s.State, len(s.Causes))
		}
	}
}

func TestConclude_NotInstalledTakesAllReads(t *testing.T) {
	for is, want := range map[Installed]State{{All: true}: NotInstalled, {}: Unknown, {Kinds: true, All: true}: Unknown} {
		var s Status
		if s.Conclude(is); s.State != want {
			t.Errorf("%+v: %s, want %s", is, s.State, want)
		}
	}
}

func TestConclude_SinceIsOfAnEventThatAgrees(t *testing.T) {
	other := opened
	other.Replica, other.Time = "b", now.Add(-time.Hour)
	for name, test := range map[string]struct {
		events []Event
		since  bool
	}{"agrees": {[]Event{closed}, true}, "another replica disagrees": {[]Event{closed, other}, false}, "disagrees": {[]Event{opened}, false}, "none": {nil, false}} {
		s := Status{Replicas: replicas(true), Proofs: proofs(Proven), Events: test.events}
		if s.Conclude(Installed{Kinds: true}); (s.Since != nil) != test.since {
			t.Errorf("%s: since %v", name, s.Since)
		}
	}
}

// TestCauses_TheEvidenceComesFirst: of the messages, then of the last Event, then of the replicas.
func TestCauses_TheEvidenceComesFirst(t *testing.T) {
	for name, test := range map[string]struct {
		status Status
		first  string
	}{
		"a message of a replica": {Status{Replicas: replicas(true), Proofs: proofs(NotProven), Events: []Event{opened}}, "a kube-apiserver does not call the webhook"},
		"an Event":               {Status{Replicas: replicas(false), Events: []Event{opened}}, "the static manifests are not the generated ones"},
		"a replica":              {Status{Replicas: replicas(false)}, "a replica of fieldperm-webhook is not ready: CrashLoopBackOff"},
		"nothing":                {Status{Missing: []Missing{{"Events", "forbidden"}}}, "you may not read the proof: forbidden"},
	} {
		s := test.status
		s.Conclude(Installed{Kinds: true})
		if len(s.Causes) != 3 || !strings.HasPrefix(s.Causes[0].Cause, test.first) || s.Causes[0].Command == "" {
			t.Errorf("%s: %+v", name, s.Causes)
		}
	}
	s := Status{Replicas: replicas(false)}
	s.Conclude(Installed{Kinds: true})
	if want := "kubectl describe pod -n fieldperm-system a"; s.Causes[0].Command != want {
		t.Errorf("got %s, want %s", s.Causes[0].Command, want)
	}
}

func TestOutcome_CountsSourcesAndWhatIsMissing(t *testing.T) {
	source := func(compiled, enforced, reason string) []Source {
		return []Source{{Compiled: compiled, Enforced: enforced, Reason: reason}}
	}
	for name, test := range map[string]struct {
		status Status
		want   State
	}{
		"proven":                   {Status{State: Proven, Sources: source("True", "True", "")}, Proven},
		"a faulty document":        {Status{State: Proven, Sources: source("False", "False", "Faulty")}, NotProven},
		"a barrier that lets pass": {Status{State: Proven, Sources: source("True", "False", "NotRefused")}, NotProven},
		"a set that only warns":    {Status{State: Proven, Sources: source("True", "False", "NotDenying")}, Proven},
		"a barrier not probed":     {Status{State: Proven, Sources: source("True", "Unknown", "NotProbed")}, Unknown},
		"no status":                {Status{State: Proven, Sources: source("Unknown", "Unknown", "")}, Unknown},
		"something missing":        {Status{State: Proven, Missing: []Missing{{}}}, Unknown},
		"missing, and not proven":  {Status{State: NotProven, Missing: []Missing{{}}}, NotProven},
		"unknown":                  {Status{State: Unknown}, Unknown},
		"the zero state":           {Status{}, Unknown},
		"not installed":            {Status{State: NotInstalled}, NotInstalled},
	} {
		if got := test.status.Outcome(); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestReadProof_AnotherProgramIsUnknown(t *testing.T) {
	for _, test := range []struct {
		answer  string
		ok      bool
		want    State
		message string
	}{
		{"ok", true, Proven, ""},
		{"ok", false, Unknown, ""},
		{"<html>ok</html>", true, Unknown, ""},
		{"", true, Unknown, ""},
		{"internal server error: interlock: enforcement is not proven: a", false, NotProven, "a"},
		{"internal server error: interlock: enforcement is not proven: a", true, Unknown, ""},
		{"internal server error: database", false, Unknown, ""},
	} {
		state, message := ReadProof(test.answer, test.ok)
		if state != test.want || state == NotProven && message != test.message {
			t.Errorf("%q %t: %s %q", test.answer, test.ok, state, message)
		}
	}
}
