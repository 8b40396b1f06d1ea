package server

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fieldperm/fieldperm/admission"
)

// TestD1_BodiesAreBoundedBeforeTheyAreRead: a body that exceeds the budget is refused without reading it, with a Retry-After.
func TestD1_BodiesAreBoundedBeforeTheyAreRead(t *testing.T) {
	b := newBudget(100, 100, 0)
	entered, leave := make(chan struct{}), make(chan struct{})
	var refused atomic.Int32
	handler := b.handler(100, func() { refused.Add(1) }, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { entered <- struct{}{}; <-leave }))
	serve := func(length int64) *httptest.ResponseRecorder {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/admit/granular", unread{t})
		r.ContentLength = length
		handler.ServeHTTP(w, r)
		return w
	}
	done := make(chan struct{})
	go func() { serve(60); close(done) }()
	<-entered
	for _, length := range []int64{41, -1, 1000} {
		if w := serve(length); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), "--memory-limit") {
			t.Errorf("a body of %d: got %d %v %s", length, w.Code, w.Header(), w.Body)
		}
	}
	if b.held() != 60 || refused.Load() != 3 {
		t.Errorf("%d bytes are held, %d refused", b.held(), refused.Load())
	}
	close(leave)
	<-done
	if b.held() != 0 {
		t.Errorf("%d bytes are held without a request", b.held())
	}
}

// TestD1_OneUserHoldsNoMoreThanAShare, but always one review. Only probes use the reserve.
func TestD1_OneUserHoldsNoMoreThanAShare(t *testing.T) {
	b := newBudget(1000, 300, probeBytes)
	own := func(bytes int64, user string) (*lease, bool) {
		t.Helper()
		l := b.take(bytes)
		if l == nil {
			return nil, false
		}
		if !l.own(user, user == admission.ProbeUser) {
			l.release()
			return nil, false
		}
		return l, true
	}
	first, ok := own(400, "flood")
	if !ok {
		t.Fatal("a user with one large review is refused")
	}
	if _, ok := own(1, "flood"); ok {
		t.Error("a user holds more than its share")
	}
	second, ok := own(300, "other")
	if !ok {
		t.Error("another user has no room")
	}
	third, ok := own(300, "third")
	if !ok {
		t.Error("a third user has no room")
	}
	if _, ok := own(10, "other"); ok {
		t.Error("the reserve is taken by a user")
	}
	probe, ok := own(10, admission.ProbeUser)
	if !ok {
		t.Error("a probe has no room")
	}
	for _, l := range []*lease{first, second, third, probe} {
		l.release()
	}
	if b.held() != 0 || len(b.users) != 0 {
		t.Errorf("%d bytes of %d users are held without a request", b.held(), len(b.users))
	}
}

func TestD1_BudgetsFollowTheLimit(t *testing.T) {
	b := newBudgets(512<<20, 32<<20, 8<<20)
	if b.reviews.total != 64<<20 || b.reviews.perUser != 16<<20 || b.authorize.total < 8<<20 {
		t.Errorf("got %d, %d, %d", b.reviews.total, b.reviews.perUser, b.authorize.total)
	}
	if small := newBudgets(16<<20, 32<<20, 8<<20); small.reviews.total < 32<<20 || small.authorize.total > 8<<20 {
		t.Error("the largest review is never answered")
	}
	if memoryLimit(5) != 5 {
		t.Error("the flag does not count")
	}
}

// TestD1_ParallelReviewsAreCorrectOrRefused: each review is decided as if it were alone, or refused with a Retry-After.
// test/load measures the memory of a real process for many large reviews.
func TestD1_ParallelReviewsAreCorrectOrRefused(t *testing.T) {
	r := start(t, func(r *running) { r.options.MaxRequestBytes, r.options.MemoryLimit = 1<<20, 16<<20 })
	client := client509(t, r.serving, r.serving)
	filler := strings.Repeat("x", 128<<10)
	body := strings.ReplaceAll(scaling, `{"spec":`, `{"metadata":{"annotations":{"filler":"`+filler+`"}},"spec":`)
	eventually(t, "ready", func() bool { return r.schemas.Ready() == nil })
	if len(body) < 256<<10 {
		t.Fatalf("the review has %d bytes", len(body))
	}
	code, want := r.post(t, client, "/admit/granular", body)
	if code != http.StatusOK || !strings.Contains(want, `"allowed":`) {
		t.Fatalf("%d %s", code, want)
	}
	var right, refused atomic.Int32
	var wait sync.WaitGroup
	for range 60 {
		wait.Go(func() {
			response, err := client.Post(r.url("/admit/granular"), "application/json", bytes.NewReader([]byte(body)))
			if err != nil {
				t.Error(err)
				return
			}
			defer response.Body.Close()
			var text bytes.Buffer
			_, _ = text.ReadFrom(response.Body)
			switch {
			case response.StatusCode == http.StatusOK && text.String() == want:
				right.Add(1)
			case response.StatusCode == http.StatusTooManyRequests && response.Header.Get("Retry-After") != "":
				refused.Add(1)
			default:
				t.Error(fmt.Sprint(response.StatusCode, " ", text.String()[:min(300, text.Len())]))
			}
		})
	}
	wait.Wait()
	t.Logf("%d decided, %d refused", right.Load(), refused.Load())
	if right.Load() == 0 {
		t.Error("no review was decided")
	}
}
