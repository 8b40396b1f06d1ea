package interlock

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/utils/clock"

	"github.com/fieldperm/fieldperm/admission"
)

// Mode is how a probe asks /admit to stop it.
type Mode string

const (
	// ModeDeny asks for a denial.
	ModeDeny Mode = "deny"
	// ModeFail asks for an error of the webhook. An error stops a write only under failurePolicy Fail.
	ModeFail Mode = "fail"
	// ModeLoaded asks /admit to allow the request, and the webhook for probes to refuse it with the state of the configuration that has it.
	ModeLoaded Mode = "loaded"
)

const (
	// nonceLife is how long a nonce is valid after it was made. It is also valid for this long before, for replicas whose clock is
	// behind.
	nonceLife   = 10 * time.Second
	randomBytes = 16
)

// ProbeTokens makes and verifies the nonces of probes, and the tokens that answer them. A nonce is valid for one target and a short
// time. It authorizes a write by admission.ProbeUser; only fieldperm may impersonate that user. The write is a dry run that
// changes nothing.
type ProbeTokens struct {
	keys  *Keyring
	clock clock.PassiveClock
}

// NewProbeTokens returns ProbeTokens that use the keys of keys.
func NewProbeTokens(keys *Keyring, c clock.PassiveClock) *ProbeTokens {
	return &ProbeTokens{keys: keys, clock: c}
}

var _ admission.Probes = (*ProbeTokens)(nil)

// Mint returns the nonces for one probe: one for each key that a replica may have. It returns none if there is no key.
func (c *ProbeTokens) Mint(target Target, mode Mode) []string {
	random := make([]byte, randomBytes)
	_, _ = rand.Read(random) // Read never returns an error.
	body := strings.Join([]string{
		string(mode), strconv.FormatInt(c.clock.Now().Add(nonceLife).UnixMilli(), 10), base64.RawURLEncoding.EncodeToString(random),
	}, ".")
	var out []string
	for _, key := range c.keys.keys() {
		out = append(out, body+"."+seal(key, "nonce", body, target))
	}
	return out
}

// Proven reports whether a message contains the token that answers one of the nonces.
func (c *ProbeTokens) Proven(nonces []string, message string) bool {
	for _, key := range c.keys.keys() {
		for _, nonce := range nonces {
			if strings.Contains(message, token(key, nonce)) {
				return true
			}
		}
	}
	return false
}

// said reports whether a message contains the token for a text in answer to one of the nonces.
func (c *ProbeTokens) said(nonces []string, message, text string) bool {
	for _, key := range c.keys.keys() {
		for _, nonce := range nonces {
			if strings.Contains(message, textToken(key, nonce, text)) {
				return true
			}
		}
	}
	return false
}

// Authorize implements admission.Probes.
func (c *ProbeTokens) Authorize(spec *authorizationv1.SubjectAccessReviewSpec) bool {
	if spec == nil || spec.ResourceAttributes == nil || spec.User != admission.ProbeUser {
		return false
	}
	target, ok := reviewed(spec.ResourceAttributes)
	if !ok {
		return false
	}
	_, _, ok = c.verify(spec.Extra[admission.ProbeKey], target)
	return ok
}

// Answer implements admission.Probes.
func (c *ProbeTokens) Answer(req *admissionv1.AdmissionRequest) admission.ProbeAnswer {
	target, ok := admitted(req)
	if !ok {
		return admission.ProbeAnswer{}
	}
	key, nonce, ok := c.verify(req.UserInfo.Extra[admission.ProbeKey], target)
	if !ok {
		return admission.ProbeAnswer{}
	}
	answer := admission.ProbeAnswer{Token: token(key, nonce), Fail: strings.HasPrefix(nonce, string(ModeFail)+".")}
	if strings.HasPrefix(nonce, string(ModeLoaded)+".") {
		answer.Loaded = func(l admission.Loaded) string {
			return strings.Join([]string{
				token(key, nonce), textToken(key, nonce, stateText(l.State)), textToken(key, nonce, knownText(l.Known)),
			}, " ")
		}
	}
	return answer
}

// verify returns the first nonce that is valid for the target, with its key.
func (c *ProbeTokens) verify(nonces []string, target Target) (key []byte, nonce string, ok bool) {
	now := c.clock.Now()
	for _, key := range c.keys.keys() {
		for _, nonce := range nonces {
			parts := strings.Split(nonce, ".")
			if len(parts) != 4 || !slices.Contains([]Mode{ModeDeny, ModeFail, ModeLoaded}, Mode(parts[0])) {
				continue
			}
			millis, err := strconv.ParseInt(parts[1], 10, 64)
			if err != nil {
				continue
			}
			if left := time.UnixMilli(millis).Sub(now); left < 0 || left > 2*nonceLife {
				continue
			}
			if hmac.Equal([]byte(parts[3]), []byte(seal(key, "nonce", strings.Join(parts[:3], "."), target))) {
				return key, nonce, true
			}
		}
	}
	return nil, "", false
}

// seal binds the body of a nonce to a target.
func seal(key []byte, purpose, body string, target Target) string {
	// JSON separates the parts without ambiguity. Encoding a struct of strings never fails.
	bound, _ := json.Marshal(struct {
		Purpose, Body string
		Target        Target
	}{purpose, body, target})
	mac := hmac.New(sha256.New, key)
	mac.Write(bound)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// token returns the token that answers a nonce. A token is not a valid nonce.
func token(key []byte, nonce string) string { return seal(key, "token", nonce, Target{}) }

// The texts that an answer proves. Each begins with another word, so that none is taken for another.
func stateText(state string) string { return "state " + state }
func knownText(known string) string { return "known " + known }

// textToken returns the token that reports a text in answer to a nonce.
func textToken(key []byte, nonce, text string) string {
	return seal(key, "text", nonce+" "+text, Target{})
}
