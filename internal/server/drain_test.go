package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
)

// TestServe_TellsLateConnectionsToLeave: a connection that is accepted before the server closes its listener, and whose handshake ends afterwards,
// is not known to the HTTP/2 server when it says goodbye. Its client gets an answer and connects elsewhere, so that the server ends.
func TestServe_TellsLateConnectionsToLeave(t *testing.T) {
	r := start(t, nil)
	late, err := net.Dial("tcp", r.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	// Connections are accepted in order: with this answer the server has accepted the late one too.
	early := client509(t, r.serving, r.serving)
	if code, text := r.get(t, early, "/livez"); code != http.StatusOK {
		t.Fatal(code, text)
	}
	r.stop()
	eventually(t, "goodbye to the early connection", func() bool { code, _ := r.get(t, early, "/livez"); return code == 0 })

	client := client509(t, r.serving, r.serving)
	errElsewhere := errors.New("the client connects elsewhere")
	connections := 0
	client.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) {
		connections++
		if connections > 1 {
			return nil, errElsewhere
		}
		return late, nil
	}
	answers := 0
	eventually(t, "told to leave", func() bool {
		code, text := r.get(t, client, "/livez")
		if code == http.StatusOK {
			answers++
		}
		return strings.Contains(text, errElsewhere.Error())
	})
	if answers == 0 {
		t.Error("the late connection got no answer")
	}
	if err := <-r.done; err != nil {
		t.Error(err)
	}
}
