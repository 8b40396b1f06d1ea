package conditions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/union"
)

// truth is what a condition evaluates to.
type truth string

const (
	absent truth = ""
	yes    truth = "true"
	no     truth = "false"
	fails  truth = "error"
)

// behavior is what one authorizer does: it decides at once, or has a condition of each effect that is not absent.
type behavior struct {
	decision               authorizer.Decision
	err                    error
	deny, noOpinion, allow truth
}

var errAuthorizer = errors.New("fails")

func (b behavior) conditional() bool { return b.deny != absent || b.allow != absent }

func (b behavior) String() string {
	if b.conditional() {
		return fmt.Sprintf("{deny:%s noOpinion:%s allow:%s}", b.deny, b.noOpinion, b.allow)
	}
	return fmt.Sprintf("%s(%v)", b.decision, b.err)
}

// atOnce is what the authorizer would decide if it knew the objects.
func (b behavior) atOnce() authorizer.Decision {
	switch {
	case !b.conditional():
		return b.decision
	case b.deny == yes, b.deny == fails:
		return authorizer.DecisionDeny
	case b.noOpinion == yes, b.noOpinion == fails:
		return authorizer.DecisionNoOpinion
	case b.allow == yes:
		return authorizer.DecisionAllow
	}
	return authorizer.DecisionNoOpinion
}

func (b behavior) canAllow() bool {
	return b.allow != absent || !b.conditional() && b.decision == authorizer.DecisionAllow
}

// fake is an authorizer that counts questions.
type fake struct {
	behavior
	asked, evaluated int
}

func (f *fake) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	panic("a caller that handles conditions asks for them")
}

func (f *fake) ConditionsAwareAuthorize(context.Context, authorizer.Attributes) authorizer.ConditionsAwareDecision {
	f.asked++
	if !f.conditional() {
		return authorizer.ConditionsAwareDecisionFromParts(f.decision, "", f.err)
	}
	list := func(id string, is truth) []authorizer.Condition {
		if is == absent {
			return nil
		}
		return []authorizer.Condition{authorizer.GenericCondition{ID: id, Condition: string(is)}}
	}
	return authorizer.ConditionsAwareDecisionConditionsMap(list("deny", f.deny), list("no-opinion", f.noOpinion), list("allow", f.allow))
}

func (f *fake) EvaluateConditions(ctx context.Context, d authorizer.ConditionsAwareDecision, in authorizer.ConditionsData) (authorizer.Decision, string, error) {
	f.evaluated++
	return d.ConditionsMap().Evaluate(ctx, in, func(_ context.Context, c authorizer.Condition, _ authorizer.ConditionsData) (bool, error) {
		if truth(c.GetCondition()) == fails {
			return false, errAuthorizer
		}
		return truth(c.GetCondition()) == yes, nil
	})
}

// data is that of a request whose content does not matter.
type data struct{}

func (data) GetName() string      { return "" }
func (data) GetNamespace() string { return "" }
func (data) GetResource() runtimeschema.GroupVersionResource {
	return runtimeschema.GroupVersionResource{}
}
func (data) GetSubresource() string                      { return "" }
func (data) GetOperation() authorizer.AdmissionOperation { return "CREATE" }
func (data) GetOperationOptions() runtime.Object         { return nil }
func (data) IsDryRun() bool                              { return false }
func (data) GetObject() runtime.Object                   { return nil }
func (data) GetOldObject() runtime.Object                { return nil }
func (data) GetKind() runtimeschema.GroupVersionKind     { return runtimeschema.GroupVersionKind{} }
func (data) GetUserInfo() user.Info                      { return nil }

// everything has each behavior: unconditional decisions with and without an error, and all conditions that can decide.
func everything() []behavior {
	out := unconditional()
	for _, deny := range []truth{absent, yes, no, fails} {
		for _, noOpinion := range []truth{absent, yes, no, fails} {
			for _, allow := range []truth{absent, yes, no, fails} {
				if b := (behavior{deny: deny, noOpinion: noOpinion, allow: allow}); b.conditional() {
					out = append(out, b)
				}
			}
		}
	}
	return out
}

func unconditional() []behavior {
	return []behavior{
		{decision: authorizer.DecisionAllow}, {decision: authorizer.DecisionDeny}, {decision: authorizer.DecisionNoOpinion},
		{decision: authorizer.DecisionDeny, err: errAuthorizer}, {decision: authorizer.DecisionNoOpinion, err: errAuthorizer},
	}
}

// different has one behavior for each way in which an authorizer can influence a chain.
func different() []behavior {
	return append(unconditional(),
		behavior{allow: yes}, behavior{allow: no}, behavior{allow: fails},
		behavior{deny: yes}, behavior{deny: no}, behavior{deny: fails},
		behavior{deny: no, allow: yes}, behavior{deny: yes, allow: yes}, behavior{noOpinion: yes, allow: yes}, behavior{noOpinion: fails, allow: yes},
	)
}

// TestK1_TheDecisionIsThatOfAuthorizersThatKnowTheObjects: for all chains of one and two authorizers with every behavior, and of three and four
// with each that differs for a chain. No authorizer is asked before its decision is needed, and none is asked twice.
func TestK1_TheDecisionIsThatOfAuthorizersThatKnowTheObjects(t *testing.T) {
	tried := 0
	each(everything(), 2, nil, func(chain []behavior) {
		tried++
		holds(t, chain)
	})
	each(different(), 4, nil, func(chain []behavior) {
		tried++
		holds(t, chain)
	})
	if tried < 50_000 {
		t.Errorf("only %d chains", tried)
	}
}

func each(of []behavior, length int, prefix []behavior, visit func([]behavior)) {
	visit(prefix)
	if len(prefix) == length {
		return
	}
	for _, b := range of {
		each(of, length, append(slices.Clip(prefix), b), visit)
	}
}

func holds(t *testing.T, behaviors []behavior) {
	t.Helper()
	var fakes []*fake
	var named []union.NamedAuthorizer
	// want is what the authorizers decide at once. The first phase ends with the authorizer of the index first, the second one of last.
	want, first, last := authorizer.DecisionNoOpinion, len(behaviors)-1, len(behaviors)-1
	for i, b := range slices.Backward(behaviors) {
		if b.canAllow() || !b.conditional() && b.decision == authorizer.DecisionDeny {
			first = i
		}
		if d := b.atOnce(); d != authorizer.DecisionNoOpinion {
			want, last = d, i
		}
	}
	for i, b := range behaviors {
		fakes = append(fakes, &fake{behavior: b})
		named = append(named, union.NamedAuthorizer{AuthorizerName: fmt.Sprint("n", i), Authorizer: fakes[i]})
	}
	chain, err := NewChain(named...)
	if err != nil {
		t.Fatal(err)
	}
	pending := chain.Authorize(t.Context(), authorizer.AttributesRecord{})
	for i, f := range fakes {
		if is := f.asked == 1; is != (i <= first) || f.evaluated > 0 {
			t.Fatalf("%v: authorizer %d was asked %d times in the authorization phase", behaviors, i, f.asked)
		}
	}
	if can := pending.CanBecomeAllowed(); want == authorizer.DecisionAllow && !can || can != (first >= 0 && behaviors[first].canAllow()) {
		t.Fatalf("%v: can become allowed: %t, and with the objects it is %s", behaviors, can, want)
	}
	if decision, _, _, ok := pending.Unconditional(); ok && decision != want {
		t.Fatalf("%v: is %s without the objects, and %s with them", behaviors, decision, want)
	} else if ok == slices.ContainsFunc(behaviors[:first+1], behavior.conditional) && !(ok && decision == authorizer.DecisionDeny) {
		t.Fatalf("%v: unconditional %t", behaviors, ok)
	}
	got, _, err := pending.Evaluate(t.Context(), data{})
	if got != want {
		t.Fatalf("%v: %s, want %s", behaviors, got, want)
	}
	if got == authorizer.DecisionAllow && err != nil {
		t.Fatalf("%v: allowed with %v", behaviors, err)
	}
	for i, f := range fakes {
		if f.asked > 1 || f.evaluated > 1 || (f.asked == 1) != (i <= max(first, last)) {
			t.Fatalf("%v: authorizer %d was asked %d times and evaluated %d times", behaviors, i, f.asked, f.evaluated)
		}
	}
}

// TestK1_TheZeroPendingDenies: and so does a phase without objects.
func TestK1_TheZeroPendingDenies(t *testing.T) {
	var zero Pending
	if decision, _, err, ok := zero.Unconditional(); decision != authorizer.DecisionDeny || err == nil || !ok || zero.CanBecomeAllowed() {
		t.Errorf("the zero Pending is %s %v %t", decision, err, ok)
	}
	if decision, _, err := zero.Evaluate(t.Context(), data{}); decision != authorizer.DecisionDeny || err == nil {
		t.Errorf("the zero Pending evaluates to %s %v", decision, err)
	}
	chain, err := NewChain(union.NamedAuthorizer{AuthorizerName: "a", Authorizer: &fake{behavior: behavior{allow: yes}}})
	if err != nil {
		t.Fatal(err)
	}
	pending := chain.Authorize(t.Context(), authorizer.AttributesRecord{})
	if decision, _, err := pending.Evaluate(t.Context(), nil); decision != authorizer.DecisionDeny || err == nil {
		t.Errorf("without objects: %s %v", decision, err)
	}
	var none *Chain
	pending = none.Authorize(t.Context(), authorizer.AttributesRecord{})
	if decision, _, _, ok := pending.Unconditional(); decision != authorizer.DecisionNoOpinion || !ok || pending.CanBecomeAllowed() {
		t.Errorf("the nil Chain: %s %t", decision, ok)
	}
}

func TestK1_NewChainRefusesNames(t *testing.T) {
	of := func(name string) union.NamedAuthorizer {
		return union.NamedAuthorizer{AuthorizerName: name, Authorizer: &fake{}}
	}
	for want, named := range map[string][]union.NamedAuthorizer{
		"duplicate": {of("a"), of("a")}, "empty": {of("")}, `authorizer "a": is nil`: {{AuthorizerName: "a"}},
	} {
		if _, err := NewChain(named...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestK1_ReasonsAndErrorsStay: an administrator sees them whichever phase they are from.
func TestK1_ReasonsAndErrorsStay(t *testing.T) {
	chain, err := NewChain(
		union.NamedAuthorizer{AuthorizerName: "first", Authorizer: &fake{behavior: behavior{decision: authorizer.DecisionNoOpinion, err: errAuthorizer}}},
		union.NamedAuthorizer{AuthorizerName: "second", Authorizer: &fake{behavior: behavior{allow: fails}}},
		union.NamedAuthorizer{AuthorizerName: "third", Authorizer: &fake{behavior: behavior{decision: authorizer.DecisionNoOpinion, err: errAuthorizer}}},
	)
	if err != nil {
		t.Fatal(err)
	}
	pending := chain.Authorize(t.Context(), authorizer.AttributesRecord{})
	_, _, err = pending.Evaluate(t.Context(), data{})
	for _, want := range []string{"first: fails", `condition "allow" with effect=Allow`, "third: fails"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
}
