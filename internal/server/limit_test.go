package server

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

func TestServe_RequestsAboveTheLimitAreRefusedUnread(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	handler := newLimit(1).handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { entered <- struct{}{}; <-leave }))
	serve := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/admit/granular", unread{t}))
		return w
	}
	done := make(chan struct{})
	go func() { serve(); close(done) }()
	<-entered
	if w := serve(); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "--max-requests-in-flight") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	close(leave)
	<-done
	go func() { <-entered }()
	if w := serve(); w.Code != http.StatusOK {
		t.Errorf("after the first has left: %d %s", w.Code, w.Body)
	}
}

// unread is a body that fails the test when it is read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, nil
}

// If kube-apiserver presents no certificate to admission webhooks, it still presents one to its authorization webhook. Only a
// caller with a certificate may use that.
func TestServe_CallersAnyReachAdmissionOnly(t *testing.T) {
	r := start(t, func(r *running) { r.options.AdmissionCallers = callersAny })
	unknown := client509(t, r.serving, nil)
	for path, open := range map[string]bool{"/admit/granular": true, "/admit/uncovered": true, "/admit/schemas": true, "/authorize": false, "/authorize/conditionsChain": false, "/conditions/conditionsChain": false, "/metrics": false} {
		if code, text := r.post(t, unknown, path, scaling); open == (code == http.StatusUnauthorized) {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
}

// TestP9_EveryRefusedQuestionIsCounted: also one that kube-apiserver asked in a way that fieldperm does not read.
func TestP9_EveryRefusedQuestionIsCounted(t *testing.T) {
	for code, want := range map[int]bool{
		http.StatusOK: false, http.StatusBadRequest: true, http.StatusRequestEntityTooLarge: true, http.StatusTooManyRequests: true, http.StatusServiceUnavailable: true,
	} {
		refused := 0
		handler := onRefusal(func(got int) { refused = got }, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/admit/observed", http.NoBody))
		if refused != 0 != want || want && refused != code {
			t.Errorf("HTTP %d: refused %d", code, refused)
		}
	}
}

// slow is a ResponseWriter with a deadline.
type slow struct {
	http.ResponseWriter
	ended int
}

func (s *slow) SetReadDeadline(at time.Time) error {
	if at.Before(time.Now()) {
		s.ended++
	}
	return nil
}

// TestServe_ATimerThatFiresLateTouchesNoResponse: net/http uses the memory of a response again after the request.
func TestServe_ATimerThatFiresLateTouchesNoResponse(t *testing.T) {
	w := &slow{ResponseWriter: httptest.NewRecorder()}
	timer := newBodyTimer(w)
	if timer.end(); w.ended != 1 {
		t.Errorf("the reading of a slow body was ended %d times", w.ended)
	}
	timer.stop()
	if timer.end(); w.ended != 1 {
		t.Error("the response was used after the request")
	}
}

// TestServe_ASlowSenderIsNotWaitedFor with both versions of HTTP.
func TestServe_ASlowSenderIsNotWaitedFor(t *testing.T) {
	for _, two := range []bool{false, true} {
		read := make(chan error, 1)
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			timer := newBodyTimer(w)
			defer timer.stop()
			first := make([]byte, 1)
			if _, err := r.Body.Read(first); err != nil {
				read <- err
				return
			}
			go timer.end()
			_, err := io.ReadAll(r.Body)
			read <- err
		}))
		server.EnableHTTP2 = two
		server.StartTLS()
		t.Cleanup(server.Close)
		body, sender := io.Pipe()
		t.Cleanup(func() { sender.Close() })
		go func() { _, _ = sender.Write([]byte("x")) }() // Nothing follows.
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, body)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if response, err := server.Client().Do(request); err == nil {
				response.Body.Close()
			}
		}()
		if err := <-read; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("HTTP/2 %t: %v", two, err)
		}
	}
}
