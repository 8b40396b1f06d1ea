package oracle

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/fieldperm/fieldperm/test/store"
)

// asked is one question of kube-apiserver to /admit, and what fieldperm said.
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

// ledger keeps what /admit was asked, for the shard that owns the object. It may be used by several goroutines.
type ledger struct {
	mu     sync.Mutex
	shards map[int][]asked
	// strange is given what cannot be read.
	strange func(string)
}

// enter takes a question and its answer, before kube-apiserver has the answer: a request that is answered has all of its questions
// here.
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
		l.strange(fmt.Sprintf("%s was asked what is no review: %v", path, err))
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
		// The key tells the owner; of an object that is not stored yet the name does.
		if shard, owned := shardOf(&Event{Key: store.Prefix + "ipaddresses/" + name}); name != "" && owned {
			l.mu.Lock()
			l.shards[shard] = append(l.shards[shard], a)
			l.mu.Unlock()
			return
		}
	}
}

// take returns what was asked about a user's request to objects of a shard since it was called last. Others ask as well: the
// administrator, controllers.
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

// contradicts tells why what was stored cannot be what /admit said: it refused, or was not asked although only an Allow of
// fieldperm lets the user pass. It is empty if all is well.
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
