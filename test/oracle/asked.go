package oracle

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/fieldperm/fieldperm/test/store"
)

// asked is one review that kube-apiserver sent to /admit, and the decision of fieldperm.
type asked struct {
	// Path is the webhook: /admit/granular or another.
	Path, User string
	Allowed    bool
	Message    string
}

func (a asked) String() string {
	if a.Allowed {
		return a.Path + ": allowed"
	}
	return a.Path + ": " + a.Message
}

// ledger keeps the reviews that /admit received, for the shard that owns the object. Several goroutines may use it.
type ledger struct {
	mu     sync.Mutex
	shards map[int][]asked
	// strange receives every review that cannot be read.
	strange func(string)
}

// enter records a review and its decision before kube-apiserver receives the decision. So a request that has been answered has all of its
// reviews here.
func (l *ledger) enter(path string, question, answer []byte) {
	if !strings.HasPrefix(path, "/admit/") {
		return
	}
	var review struct {
		Request struct {
			Namespace, Name string
			Object          struct {
				Metadata struct{ Name, GenerateName string }
			}
			UserInfo struct{ Username string }
		}
	}
	if err := json.Unmarshal(question, &review); err != nil {
		l.strange(fmt.Sprintf("%s received a body that is no review: %v", path, err))
		return
	}
	a := asked{Path: path, User: review.Request.UserInfo.Username, Message: "no answer"}
	var said admissionv1.AdmissionReview
	if json.Unmarshal(answer, &said) == nil && said.Response != nil {
		a.Allowed = said.Response.Allowed
		if said.Response.Result != nil {
			a.Message = said.Response.Result.Message
		}
	}
	r := review.Request
	for _, name := range []string{r.Namespace, r.Name, r.Object.Metadata.Name, r.Object.Metadata.GenerateName} {
		// The key determines the owner. An object that is not stored yet has no key: its name determines the owner.
		if shard, owned := shardOf(&Event{Key: store.Prefix + "ipaddresses/" + name}); name != "" && owned {
			l.mu.Lock()
			l.shards[shard] = append(l.shards[shard], a)
			l.mu.Unlock()
			return
		}
	}
}

// take returns the reviews of a user's request to objects of a shard since the last call. It leaves out the reviews of other users, such as
// the administrator and controllers.
func (l *ledger) take(shard int, user string) []asked {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []asked
	for _, a := range l.shards[shard] {
		if a.User == user {
			out = append(out, a)
		}
	}
	l.shards[shard] = nil
	return out
}

// contradicts returns the reason why the stored change contradicts /admit: /admit refused it, or was not asked although only an Allow of
// fieldperm lets the user pass. It returns an empty text if there is no contradiction.
func contradicts(r *Request, said []asked) string {
	granular := false
	for _, a := range said {
		if !a.Allowed {
			return "something is stored although " + a.String()
		}
		granular = granular || a.Path == "/admit/granular"
	}
	s := standing{r.Endpoint.Place, true}
	if !granular && !r.User.generic(s) && !r.User.generic(standing{s.Place, false}) {
		return "something is stored although the user holds no generic verb and /admit/granular was not asked"
	}
	return ""
}
