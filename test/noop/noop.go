package noop

import (
	"bytes"
	"crypto/tls"
	"io"
	"net/http"
	"runtime/metrics"
	"strconv"
)

// AllocatedPath answers with the bytes that the process has allocated since its start, as a decimal number.
const AllocatedPath = "/allocated"

// The answers, with the fields of those of fieldperm-webhook. The UID stands between the first two.
const (
	reviewBegin = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"`
	reviewEnd   = `","allowed":true,"auditAnnotations":{"checks":"2","mode":"granular","verbs":"scale"}}}`
	access      = `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":true,"reason":"granular: the user holds \"granular\"; admission decides on each field"}}`
)

// RefusingPath refuses an AdmissionReview with Refused in it, which shows that a webhook is asked. To search for it costs time.
const (
	RefusingPath = "/refusing"
	Refused      = "web:refused"
)

// Handler answers every path with an allowed review: /authorize with a SubjectAccessReview, all others with an AdmissionReview.
func Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if body, ok := read(w, r); ok {
			answer(w, reviewBegin, uid(body), reviewEnd)
		}
	})
	mux.HandleFunc(RefusingPath, func(w http.ResponseWriter, r *http.Request) {
		body, ok := read(w, r)
		switch {
		case ok && bytes.Contains(body, []byte(Refused)):
			answer(w, reviewBegin, uid(body), `","allowed":false,"status":{"code":403,"message":"refused"}}}`)
		case ok:
			answer(w, reviewBegin, uid(body), reviewEnd)
		}
	})
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		if _, ok := read(w, r); ok {
			answer(w, access)
		}
	})
	mux.HandleFunc(AllocatedPath, func(w http.ResponseWriter, _ *http.Request) {
		sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
		metrics.Read(sample)
		_, _ = io.WriteString(w, strconv.FormatUint(sample[0].Value.Uint64(), 10)) // A client that is gone needs no answer.
	})
	return mux
}

// Server returns a server of Handler. Serve it with ServeTLS and no files.
func Server(certificate tls.Certificate) *http.Server {
	return &http.Server{ //nolint:gosec // A limit of time is what the floor does not have.
		Handler:   Handler(),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12},
	}
}

func read(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	body := make([]byte, max(0, r.ContentLength))
	if _, err := io.ReadFull(r.Body, body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return nil, false
	}
	return body, true
}

// uid returns the first string after the key "uid", which in the bodies of kube-apiservers is the UID of the request.
func uid(body []byte) string {
	_, rest, _ := bytes.Cut(body, []byte(`"uid":"`))
	value, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(value)
}

func answer(w http.ResponseWriter, parts ...string) {
	w.Header().Set("Content-Type", "application/json")
	for _, part := range parts {
		_, _ = io.WriteString(w, part) // A client that is gone needs no answer.
	}
}
