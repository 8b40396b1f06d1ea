package interlock

import (
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/admission"
)

func patching() Target {
	return Target{Operation: admissionv1.Update, Group: "apps", Version: "v1", Resource: "deployments", Subresource: "scale", Namespace: "shop", Name: "web"}
}

func spec(nonces []string) *authorizationv1.SubjectAccessReviewSpec {
	return &authorizationv1.SubjectAccessReviewSpec{
		User: admission.ProbeUser, Extra: map[string]authorizationv1.ExtraValue{admission.ProbeKey: nonces},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "patch", Group: "apps", Version: "v1", Resource: "deployments", Subresource: "scale", Namespace: "shop", Name: "web"},
	}
}

func request(nonces []string) *admissionv1.AdmissionRequest {
	return &admissionv1.AdmissionRequest{
		Operation: admissionv1.Update, Namespace: "shop", Name: "web", SubResource: "scale",
		Resource: metav1.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
		UserInfo: authenticationv1.UserInfo{Username: admission.ProbeUser, Extra: map[string]authenticationv1.ExtraValue{admission.ProbeKey: nonces}},
	}
}

func TestA5_NonceIsGoodForItsTargetAlone(t *testing.T) {
	c, _, _ := newTestTokens(t)
	nonces := c.Mint(patching(), ModeDeny)
	if !c.Authorize(spec(nonces)) || c.Answer(request(nonces)).Token == "" {
		t.Fatal("a fresh nonce is not good")
	}
	for name, change := range map[string]func(*authorizationv1.SubjectAccessReviewSpec){
		"user":        func(s *authorizationv1.SubjectAccessReviewSpec) { s.User = "alice" },
		"verb update": func(s *authorizationv1.SubjectAccessReviewSpec) { s.ResourceAttributes.Verb = "update" },
		"verb create": func(s *authorizationv1.SubjectAccessReviewSpec) { s.ResourceAttributes.Verb = "create" },
		"verb delete": func(s *authorizationv1.SubjectAccessReviewSpec) { s.ResourceAttributes.Verb = "delete" },
		"group":       func(s *authorizationv1.SubjectAccessReviewSpec) { s.ResourceAttributes.Group = "" },
		"version":     func(s *authorizationv1.SubjectAccessReviewSpec) { s.ResourceAttributes.Version = "v1beta1" },
		"resource":    func(s *authorizationv1.SubjectAccessReviewSpec) { s.ResourceAttributes.Resource = "daemonsets" },
		"subresource": func(s *authorizationv1.SubjectAccessReviewSpec) { s.ResourceAttributes.Subresource = "" },
		"namespace":   func(s *authorizationv1.SubjectAccessReviewSpec) { s.ResourceAttributes.Namespace = "bank" },
		"name":        func(s *authorizationv1.SubjectAccessReviewSpec) { s.ResourceAttributes.Name = "db" },
		"no resource": func(s *authorizationv1.SubjectAccessReviewSpec) { s.ResourceAttributes = nil },
		"no nonce":    func(s *authorizationv1.SubjectAccessReviewSpec) { s.Extra = nil },
		"other key": func(s *authorizationv1.SubjectAccessReviewSpec) {
			s.Extra = map[string]authorizationv1.ExtraValue{"fieldperm.dev/other": nonces}
		},
	} {
		s := spec(nonces)
		change(s)
		if c.Authorize(s) {
			t.Errorf("good for another %s", name)
		}
	}
	for name, change := range map[string]func(*admissionv1.AdmissionRequest){
		"create":   func(r *admissionv1.AdmissionRequest) { r.Operation = admissionv1.Create },
		"delete":   func(r *admissionv1.AdmissionRequest) { r.Operation = admissionv1.Delete },
		"connect":  func(r *admissionv1.AdmissionRequest) { r.Operation = admissionv1.Connect },
		"resource": func(r *admissionv1.AdmissionRequest) { r.Resource.Resource = "daemonsets" },
		"name":     func(r *admissionv1.AdmissionRequest) { r.Name = "db" },
		"another version was sent": func(r *admissionv1.AdmissionRequest) {
			r.RequestResource, r.RequestSubResource = &metav1.GroupVersionResource{Group: "apps", Version: "v1beta2", Resource: "deployments"}, "scale"
		},
		"as was sent": func(r *admissionv1.AdmissionRequest) {
			r.RequestResource = &metav1.GroupVersionResource{Group: "extensions", Version: "v1", Resource: "deployments"}
		},
	} {
		r := request(nonces)
		change(r)
		if c.Answer(r).Token != "" {
			t.Errorf("answered for another request: %s", name)
		}
	}
	for name, nonce := range map[string]string{
		"empty": "", "cut": nonces[0][:len(nonces[0])-1], "another mode": strings.Replace(nonces[0], "deny.", "fail.", 1),
		"no mode": strings.TrimPrefix(nonces[0], "deny."), "unknown mode": strings.Replace(nonces[0], "deny.", "pass.", 1),
		"prolonged": strings.Replace(nonces[0], "deny.1", "deny.2", 1), "a token": token([]byte("k"), nonces[0]),
	} {
		if c.Authorize(spec([]string{nonce})) {
			t.Errorf("%s: %q is good", name, nonce)
		}
	}
	if a, b := c.Mint(patching(), ModeDeny), c.Mint(patching(), ModeDeny); a[0] == b[0] {
		t.Error("two nonces are one")
	}
}

func TestA5_NonceExpires(t *testing.T) {
	c, _, clock := newTestTokens(t)
	nonces := c.Mint(patching(), ModeDeny)
	clock.Step(nonceLife)
	if !c.Authorize(spec(nonces)) {
		t.Error("expired too early")
	}
	clock.Step(time.Millisecond)
	if c.Authorize(spec(nonces)) || c.Answer(request(nonces)).Token != "" {
		t.Error("never expires")
	}
	// A replica whose clock is behind accepts the nonce, within a limit.
	clock.SetTime(begin().Add(-nonceLife))
	if !c.Authorize(spec(nonces)) {
		t.Error("refused by a clock that is 10 s behind")
	}
	clock.SetTime(begin().Add(-nonceLife - time.Millisecond))
	if c.Authorize(spec(nonces)) {
		t.Error("taken by a clock that is far behind")
	}
}

func TestA5_TokenProvesOneNonce(t *testing.T) {
	c, _, _ := newTestTokens(t)
	nonces := c.Mint(patching(), ModeDeny)
	said := c.Answer(request(nonces))
	if said.Fail || !c.Proven(nonces, `admission webhook "x" denied the request: probe `+said.Token) {
		t.Errorf("%+v does not prove it", said)
	}
	if c.Proven(c.Mint(patching(), ModeDeny), said.Token) {
		t.Error("the token of one probe proves another")
	}
	if c.Proven(nonces, "user fieldperm:probe with "+nonces[0]) {
		t.Error("a repeated nonce is a proof")
	}
	if c.Proven(nil, said.Token) || c.Proven(nonces, "") {
		t.Error("nothing proves something")
	}
	asking := c.Mint(patching(), ModeLoaded)
	answer := c.Answer(request(asking))
	if answer.Loaded == nil || answer.Fail || said.Loaded != nil {
		t.Fatalf("a probe for the state: %+v", answer)
	}
	text := answer.Loaded(admission.Loaded{State: "a", Known: "k"})
	if !c.Proven(asking, text) {
		t.Error("an answer proves nothing")
	}
	for said, want := range map[string]bool{
		stateText("a"): true, knownText("k"): true,
		stateText("k"): false, stateText("b"): false, knownText("a"): false, "a": false,
	} {
		if (Answer{c, asking, "probe " + text}).says(said) != want {
			t.Errorf("it says %q: want %t", said, want)
		}
		if (Answer{c, c.Mint(patching(), ModeLoaded), text}).says(said) || (Answer{c, asking, answer.Token}).says(said) || (Answer{}).says(said) {
			t.Errorf("another answer says %q", said)
		}
	}
	if failing := c.Mint(patching(), ModeFail); !c.Answer(request(failing)).Fail {
		t.Error("the mode is lost")
	}
}

func TestA5_ReplicasShareKeysThroughARotation(t *testing.T) {
	one, oneKeys, clock := newTestTokens(t)
	otherKeys := NewKeyring(clock)
	other := NewProbeTokens(otherKeys, clock)
	proves := func(sender, answerer *ProbeTokens) bool {
		nonces := sender.Mint(patching(), ModeDeny)
		return answerer.Authorize(spec(nonces)) && sender.Proven(nonces, answerer.Answer(request(nonces)).Token)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	if proves(one, other) || len(other.Mint(patching(), ModeDeny)) != 0 {
		t.Error("a replica without a key takes part")
	}
	must(otherKeys.Set([]byte("a private key")))
	if !proves(one, other) {
		t.Error("the same key does not do")
	}
	// One replica reads the new certificate before the other.
	must(oneKeys.Set([]byte("a new private key")))
	must(oneKeys.Set([]byte("a new private key")))
	if !proves(one, other) || !proves(other, one) {
		t.Error("a rotation under way withdraws the proof")
	}
	must(otherKeys.Set([]byte("a new private key")))
	clock.Step(overlap)
	nonces := NewProbeTokens(func() *Keyring { k := NewKeyring(clock); must(k.Set([]byte("a private key"))); return k }(), clock).Mint(patching(), ModeDeny)
	if one.Authorize(spec(nonces)) {
		t.Error("the old key is good for ever")
	}
	if !proves(one, other) {
		t.Error("the new key does not do")
	}
	if err := oneKeys.Set(nil); err == nil {
		t.Error("no key is a key")
	}
	foreign := NewKeyring(clock)
	must(foreign.Set([]byte("another key")))
	if proves(NewProbeTokens(foreign, clock), one) {
		t.Error("any key does")
	}
}
