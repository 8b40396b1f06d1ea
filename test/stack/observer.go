package stack

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
)

// Observe receives each request of kube-apiserver to fieldperm, and the answer before kube-apiserver gets it: nil if there is none. It is
// called concurrently.
type Observe func(path string, question, answer []byte)

// observer passes requests from kube-apiserver to fieldperm, and changes nothing.
type observer struct {
	server  *http.Server
	running chan struct{}
}

// observe starts to pass requests from an address to fieldperm.
func (s *Stack) observe(address string) error {
	pair, err := tls.LoadX509KeyPair(s.configuration(servingCert), s.configuration(servingKey))
	if err != nil {
		return fmt.Errorf("observer: %w", err)
	}
	onward, err := s.WebhookClient()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("observer: %w", err)
	}
	o := &observer{running: make(chan struct{})}
	o.server = &http.Server{ //nolint:gosec // It serves kube-apiserver, on this machine.
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}},
		ErrorLog:  log.New(io.Discard, "", 0),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			passOn(w, r, onward, s.replicas[0].url(), s.config.Observe)
		}),
	}
	s.observer = o
	go func() {
		defer close(o.running)
		_ = o.server.ServeTLS(listener, "", "") // It returns when the server is closed.
	}()
	return nil
}

// passOn sends a request to fieldperm, and its answer back.
func passOn(w http.ResponseWriter, r *http.Request, onward *http.Client, to string, observe Observe) {
	question, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer, err := exchange(r.Context(), r, onward, to, question)
	if err != nil {
		observe(r.URL.Path, question, nil)
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	observe(r.URL.Path, question, answer.body)
	for name, values := range answer.header {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.code)
	_, _ = w.Write(answer.body) // Writing fails only if kube-apiserver has closed the connection.
}

// answered is a whole answer of fieldperm.
type answered struct {
	code   int
	header http.Header
	body   []byte
}

func exchange(ctx context.Context, r *http.Request, onward *http.Client, to string, question []byte) (*answered, error) {
	request, err := http.NewRequestWithContext(ctx, r.Method, to+r.URL.RequestURI(), bytes.NewReader(question))
	if err != nil {
		return nil, err
	}
	request.Header = r.Header.Clone()
	response, err := onward.Do(request)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	return &answered{response.StatusCode, response.Header, body}, nil
}

func (o *observer) stop() error {
	err := o.server.Close()
	<-o.running
	return err
}
