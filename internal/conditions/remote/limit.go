package remote

import (
	"fmt"
	"net/http"
)

// mostAnswer is larger than any review, in bytes. Without a limit, client-go would read on.
const mostAnswer = 4 << 20

// limited bounds the size of answers. It returns an error for a redirect: the question and the credentials are meant for one address only.
type limited struct{ base http.RoundTripper }

func limit(base http.RoundTripper) http.RoundTripper { return limited{base} }

// RoundTrip implements http.RoundTripper.
func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= 300 && response.StatusCode < 400 {
		_ = response.Body.Close()
		return nil, fmt.Errorf("answers %q: write the address that it redirects to", response.Status)
	}
	response.Body = http.MaxBytesReader(nil, response.Body, mostAnswer)
	return response, nil
}
