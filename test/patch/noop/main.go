// Command noop is the least that an admission webhook can be: it reads a review and allows it, unless the review has the word that shows
// that it is asked. It prints its address, and ends when its standard input does, so that it does not outlive the program that started it.
package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
)

func main() {
	if len(os.Args) != 3 {
		fail(fmt.Errorf("usage: noop CERT-FILE KEY-FILE"))
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fail(err)
	}
	fmt.Println(listener.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	server := &http.Server{Handler: http.HandlerFunc(allow)} //nolint:gosec // It serves one kube-apiserver on this machine.
	fail(server.ServeTLS(listener, os.Args[1], os.Args[2]))
}

var (
	// uid begins the UID of a review: kube-apiserver writes it first.
	uid = []byte(`"uid":"`)
	// refused is in an image that no review may have.
	refused = []byte("web:refused")
)

func allow(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_, rest, _ := bytes.Cut(body, uid)
	value, _, found := bytes.Cut(rest, []byte(`"`))
	if !found {
		http.Error(w, "no UID", http.StatusBadRequest)
		return
	}
	answer := `"allowed":true`
	if bytes.Contains(body, refused) {
		answer = `"allowed":false,"status":{"code":403,"message":"refused"}`
	}
	w.Header().Set("Content-Type", "application/json")
	// An error means that kube-apiserver has closed the connection.
	_, _ = fmt.Fprintf(w, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"%s",%s}}`, value, answer)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "noop:", err)
	os.Exit(1)
}
