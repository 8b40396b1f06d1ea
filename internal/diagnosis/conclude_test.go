package diagnosis

import (
	"strings"
	"testing"
	"time"

	"github.com/fieldperm/fieldperm/admission"
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
	now    = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	closed = Event{Replica: "a", Time: now, State: Proven, Cause: "proven", Message: "Enforcement is proven"}
	opened = Event{Replica: "a", Time: now, State: NotProven, Cause: "manifests_loose", Message: "loose"}
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
		"the answer of one, and there is one":           {Status{Servers: one, Answer: &Answer{State: Proven, Servers: 1}}, Proven, "of every kube-apiserver: 1"},
		"the answer of one, and it is of both":          {Status{Servers: two, Answer: &Answer{State: Proven, Servers: 2}}, Proven, "of every kube-apiserver: 2"},
		"the answer of one, and it is of one of two":    {Status{Servers: two, Answer: &Answer{State: Proven, Servers: 1}}, Unknown, "1 of 2"},
		"it is of none":                                 {Status{Answer: &Answer{State: Proven}}, Unknown, "nothing could be read"},
		"a replica says so, and the answer is not":      {Status{Servers: one, Replicas: replicas(true), Proofs: proofs(Proven), Answer: &Answer{State: NotProven, Message: "is loose"}}, NotProven, "is loose"},
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

// TestReadAnswer_NamesOfOthersSayNothing: RBAC repeats the names of roles in its errors.
func TestReadAnswer_NamesOfOthersSayNothing(t *testing.T) {
	proven := "fieldperm: " + admission.StatusReason + admission.ProvenReason + "2"
	for reason, want := range map[string]Answer{
		proven:                                {State: Proven, Servers: 2},
		proven + admission.LoadedReason:       {State: Proven, Servers: 2, Barriers: true},
		proven + admission.LoadedReason + "?": {State: NotProven, Message: admission.ProvenReason + "2" + admission.LoadedReason + "?"},
		`RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found, ` + proven:                  {State: Proven, Servers: 2},
		"fieldperm: " + admission.StatusReason + "enforcement is not proven: server \"a\" is away": {State: NotProven, Message: "server \"a\" is away"},
		`RBAC: clusterrole.rbac.authorization.k8s.io "` + proven + `" not found`:                   {State: NotProven, Message: "kube-apiserver does not ask fieldperm who may write, or gets no answer"},
		`a quote without an end: "` + proven:                                                       {State: NotProven, Message: "kube-apiserver does not ask fieldperm who may write, or gets no answer"},
		"":                                                                                         {State: NotProven, Message: "kube-apiserver does not ask fieldperm who may write, or gets no answer"},
		proven + " or not":                                                                         {State: NotProven, Message: admission.ProvenReason + "2 or not"},
	} {
		if got := ReadAnswer(reason); got != want {
			t.Errorf("%q: %+v, want %+v", reason, got, want)
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
		"a barrier that lets pass": {Status{State: Proven, Sources: source("True", "False", "NotLoaded")}, NotProven},
		"a set that only warns":    {Status{State: Proven, Sources: source("True", "False", "NotDenying")}, Proven},
		"a barrier not proven":     {Status{State: Proven, Sources: source("True", "Unknown", "NotProven")}, Unknown},
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
		{"internal server error: enforcement is not proven: a", false, NotProven, "a"},
		{"internal server error: enforcement is not proven: a", true, Unknown, ""},
		{"internal server error: database", false, Unknown, ""},
	} {
		state, message := ReadProof(test.answer, test.ok)
		if state != test.want || state == NotProven && message != test.message {
			t.Errorf("%q %t: %s %q", test.answer, test.ok, state, message)
		}
	}
}
