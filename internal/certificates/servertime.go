package certificates

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// serverTimeout bounds one request for the time.
const serverTimeout = 5 * time.Second

// ServerTime returns a function that reads the API server's clock from the Date header of a response. It is accurate to one or two
// seconds.
func ServerTime(config *rest.Config) (func(context.Context) (time.Time, error), error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("client of the API server: %w", err)
	}
	host, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("client of the API server: %w", err)
	}
	url := strings.TrimSuffix(host.String(), "/") + "/version"
	return func(ctx context.Context) (time.Time, error) {
		ctx, cancel := context.WithTimeout(ctx, serverTimeout)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return time.Time{}, err
		}
		response, err := client.Do(request)
		if err != nil {
			return time.Time{}, fmt.Errorf("time of the API server: %w", err)
		}
		defer response.Body.Close() //nolint:errcheck // Only the header is read.
		shown, err := http.ParseTime(response.Header.Get("Date"))
		if err != nil {
			return time.Time{}, errors.New("time of the API server: its answer has no Date: see that --kubeconfig leads to a kube-apiserver, and that what stands between leaves the header")
		}
		return shown, nil
	}, nil
}
