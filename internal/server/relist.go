package server

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// relist makes every informer of a client list again when its watch has ended. Without it, client-go opens the next watch at the
// last resource version. After etcd was restored from a backup, that version may name another state: once new writes have passed it,
// the API server accepts it and sends only later events. The informer then keeps objects that no longer exist, and lacks objects that
// exist again, with no error. All API servers stop for a restore, so every watch ends. A list does not have this fault: whatever its
// resource version, it is the state of the API server that answers, or an error after which the reflector lists without a version.
//
// relist answers a watch with 410 Expired, as API servers do for a version that they no longer know, except for
//   - a watch that sends the initial state first (WatchList, or without a resource version): it is a list itself;
//   - the first watch after a list of the same objects. The list must name a resource version: those of reflectors do, those of other
//     callers do not.
//
// It passes on one watch for each list, even if that watch fails: the reflector would try a failed one again, later, at the same
// version. The delay between lists is the reflector's backoff. A client must not have two informers of the same objects at a time.
// A relist is safe for concurrent use.
type relist struct {
	base http.RoundTripper

	mu     sync.Mutex
	listed map[string]bool // the objects that were listed, until a watch or another list of them
}

var _ utilnet.RoundTripperWrapper = &relist{}

func newRelist(base http.RoundTripper) http.RoundTripper {
	return &relist{base: base, listed: map[string]bool{}}
}

// RoundTrip sends the request, or answers it itself.
func (l *relist) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		return l.base.RoundTrip(r)
	}
	query := r.URL.Query()
	watches, initial := isTrue(query, "watch"), isTrue(query, "sendInitialEvents")
	if !initial && query.Get("resourceVersion") == "" {
		return l.base.RoundTrip(r)
	}
	objects := r.URL.Path + "?" + url.Values{"label": query["labelSelector"], "field": query["fieldSelector"]}.Encode()
	if listed := l.took(objects); watches && !initial && !listed {
		return expired(r)
	}
	response, err := l.base.RoundTrip(r)
	if !watches && err == nil && response.StatusCode == http.StatusOK {
		l.mu.Lock()
		l.listed[objects] = true
		l.mu.Unlock()
	}
	return response, err
}

// WrappedRoundTripper returns the transport below.
func (l *relist) WrappedRoundTripper() http.RoundTripper { return l.base }

// took forgets that the objects were listed, and reports whether they were.
func (l *relist) took(objects string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	listed := l.listed[objects]
	delete(l.listed, objects)
	return listed
}

func isTrue(query url.Values, parameter string) bool {
	value, err := strconv.ParseBool(query.Get(parameter))
	return err == nil && value
}

// expired is the answer of an API server to a watch from a resource version that it no longer knows.
func expired(r *http.Request) (*http.Response, error) {
	status := apierrors.NewResourceExpired("a watch has ended: fieldperm lists again").ErrStatus
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	body, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		Status: strconv.Itoa(http.StatusGone) + " " + http.StatusText(http.StatusGone), StatusCode: http.StatusGone,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Content-Type": {"application/json"}},
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
		Request:       r,
	}, nil
}
