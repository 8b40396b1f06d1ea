package diagnosis

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fieldperm/fieldperm/admission"
)

// Installed is what is known of an installation beside its proof.
type Installed struct {
	// Kinds means that the API server serves the kinds of fieldperm.
	Kinds bool
	// All means that everything that shows an installation could be read.
	All bool
}

// Conclude sets State, Reason, Since and Causes from the rest of the status. Evidence against the proof counts first: one replica or one
// resource without a proof is enough. Proven takes evidence of the present for every replica, or for the only kube-apiserver.
func (s *Status) Conclude(is Installed) {
	s.State, s.Reason = s.conclude(is)
	s.Since = s.since()
	if s.State == NotProven || s.State == Unknown {
		s.Causes = s.causes()
	}
}

func (s *Status) conclude(is Installed) (state State, reason string) {
	if !is.Kinds && len(s.Webhooks) == 0 && len(s.Replicas) == 0 && s.Answer == nil {
		if is.All {
			return NotInstalled, "the cluster has no kinds, webhook configurations and Pods of fieldperm"
		}
		return Unknown, "the cluster has no kinds of fieldperm, and the rest of an installation could not be read"
	}
	for _, w := range s.Webhooks {
		if w.Fault != "" {
			return NotProven, w.Fault
		}
	}
	for _, p := range s.Proofs {
		if p.State == NotProven {
			return NotProven, fmt.Sprintf("replica %s: %s", p.Replica, p.Message)
		}
	}
	if s.Answer != nil && s.Answer.State == NotProven {
		return NotProven, s.Answer.Message
	}
	return s.fromPresent()
}

// fromPresent concludes from evidence of the present of which none is against the proof.
func (s *Status) fromPresent() (state State, reason string) {
	proven := 0
	for _, p := range s.Proofs {
		if p.State == Proven {
			proven++
		}
	}
	covered, servers := 0, max(1, len(s.Servers))
	if s.Answer != nil && s.Answer.State == Proven {
		covered = s.Answer.Servers
	}
	switch {
	case proven > 0 && proven == len(s.Proofs) && len(s.Replicas) == proven && s.covers():
		return Proven, fmt.Sprintf("every replica of fieldperm-webhook says so: %d", proven)
	case covered >= servers:
		return Proven, fmt.Sprintf("the fieldperm-webhook that kube-apiserver asks says so, of every kube-apiserver: %d", covered)
	case covered > 0:
		return Unknown, fmt.Sprintf("it is proven on %d of %d kube-apiservers, and of the others it is not known", covered, servers)
	case proven > 0:
		return Unknown, fmt.Sprintf("it is proven by %d of %d replicas, and of the others it is not known", proven, max(len(s.Replicas), len(s.Proofs)))
	}
	if len(s.Replicas) > 0 && !slices.ContainsFunc(s.Replicas, func(r Replica) bool { return r.Ready }) {
		return NotProven, "no replica of fieldperm-webhook is ready"
	}
	if last := s.last(); last != nil {
		return Unknown, fmt.Sprintf("nothing could be read of the present; the last Event is of %s: %s", last.Time.UTC().Format(time.RFC3339), last.Message)
	}
	return Unknown, "nothing could be read that shows it"
}

// covers reports whether the replicas prove every kube-apiserver: each proves all, or there is one beside each.
func (s *Status) covers() bool {
	return !slices.ContainsFunc(s.Replicas, func(r Replica) bool { return r.OwnServerOnly }) || len(s.Servers) > 0 && len(s.Replicas) >= len(s.Servers)
}

// last returns the last Event, nil if there is none.
func (s *Status) last() *Event {
	var last *Event
	for i := range s.Events {
		if last == nil || s.Events[i].Time.After(last.Time) {
			last = &s.Events[i]
		}
	}
	return last
}

// since returns the time of the last Event that agrees with the state: with Proven all replicas must agree.
func (s *Status) since() *time.Time {
	last := s.last()
	if last == nil || last.State != s.State {
		return nil
	}
	if s.State == Proven && slices.ContainsFunc(s.Events, func(e Event) bool { return e.State != Proven }) {
		return nil
	}
	at := last.Time
	return &at
}

// Faulty reports whether a source is known not to be in force as it is written.
func (s *Source) Faulty() bool {
	return s.Compiled == "False" || s.Enforced == "False" && !slices.Contains(deliberate(), s.Reason)
}

// Uncertain reports whether it is not known whether a source is in force.
func (s *Source) Uncertain() bool {
	return s.Compiled != "True" && s.Compiled != "False" || s.Enforced != "True" && s.Enforced != "False"
}

// deliberate are the reasons of Enforced False that an administrator has chosen.
func deliberate() []string { return []string{"NotDenying"} }

// Outcome returns the worst of the state and of the sources: NotProven if one is known not to be in force, Unknown if that is not known of one
// or if something could not be read.
func (s *Status) Outcome() State {
	switch {
	case s.State == NotInstalled:
		return NotInstalled
	case s.State == NotProven || slices.ContainsFunc(s.Sources, func(o Source) bool { return o.Faulty() }):
		return NotProven
	case s.State != Proven || len(s.Missing) > 0 || slices.ContainsFunc(s.Sources, func(o Source) bool { return o.Uncertain() }):
		return Unknown
	}
	return Proven
}

// messages returns all messages of the present and of the past, the present first.
func (s *Status) messages() string {
	var out []string
	out = append(out, s.Reason)
	for _, p := range s.Proofs {
		out = append(out, p.Message)
	}
	if last := s.last(); last != nil && last.State != Proven {
		out = append(out, last.Message)
	}
	return strings.Join(out, "\n")
}

// quoted is a text in quotes, as Go writes it.
var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// ReadAnswer reads the reason with which kube-apiserver refuses admission.StatusUser. Names in it may be anybody's, and are in quotes.
func ReadAnswer(reason string) Answer {
	before, said, ok := strings.Cut(quoted.ReplaceAllString(reason, ""), admission.StatusReason)
	if !ok || strings.Contains(before, `"`) {
		return Answer{State: NotProven, Message: "kube-apiserver does not ask fieldperm who may write, or gets no answer"}
	}
	if count, proven := strings.CutPrefix(said, admission.ProvenReason); proven {
		count, barriers := strings.CutSuffix(count, admission.LoadedReason)
		if n, err := strconv.Atoi(count); err == nil {
			return Answer{State: Proven, Servers: n, Barriers: barriers}
		}
	}
	_, said, _ = strings.Cut(reason, admission.StatusReason)
	return Answer{State: NotProven, Message: strings.TrimPrefix(said, "enforcement is not proven: ")}
}

// ReadProof reads the answer of /readyz/enforcement. ok means that its code was 200. An answer of another program is Unknown.
func ReadProof(answer string, ok bool) (state State, message string) {
	const failed, unproven = "internal server error: ", "enforcement is not proven: "
	message, isFailure := strings.CutPrefix(answer, failed)
	switch {
	case ok && answer == "ok":
		return Proven, ""
	case !ok && isFailure && strings.HasPrefix(message, unproven):
		return NotProven, strings.TrimPrefix(message, unproven)
	}
	return Unknown, ""
}
