package interlock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/rest"
)

// Server is a kube-apiserver.
type Server struct {
	// Address is host:port.
	Address string
	Client  rest.Interface
}

// Servers returns every kube-apiserver that calls this fieldperm's /authorize. If it returns an error or no server, enforcement is
// not proven.
type Servers func() ([]Server, error)

// Own returns Servers with only the server of config: fieldperm runs beside it, and no other server calls this fieldperm.
func Own(config *rest.Config) (Servers, error) {
	client, err := newClient(config)
	if err != nil {
		return nil, err
	}
	own := []Server{{Address: address(config.Host), Client: client}}
	return func() ([]Server, error) { return own, nil }, nil
}

func address(host string) string {
	_, after, found := strings.Cut(host, "://")
	if !found {
		after = host
	}
	return strings.TrimSuffix(after, "/")
}

// serviceName is a name in the certificate of every kube-apiserver, independent of its address.
const serviceName = "kubernetes.default.svc"

// All returns Servers with every address of the Service "kubernetes" in the namespace "default", where kube-apiservers register
// themselves. slices returns its EndpointSlices from an informer.
func All(config *rest.Config, slices func() ([]*discoveryv1.EndpointSlice, error)) Servers {
	all := &all{config: rest.CopyConfig(config), slices: slices, clients: map[string]rest.Interface{}}
	if all.config.ServerName == "" {
		all.config.ServerName = serviceName
	}
	return all.servers
}

type all struct {
	config *rest.Config
	slices func() ([]*discoveryv1.EndpointSlice, error)

	mu      sync.Mutex
	clients map[string]rest.Interface
}

func (a *all) servers() ([]Server, error) {
	list, err := a.slices()
	if err != nil {
		return nil, fmt.Errorf("EndpointSlices of default/kubernetes: %w", err)
	}
	addresses := addresses(list)
	if len(addresses) == 0 {
		return nil, errors.New("EndpointSlices of default/kubernetes: have no address: see that fieldperm may list them, or use --api-servers own where it runs beside its kube-apiserver")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	out := make([]Server, 0, len(addresses))
	for _, address := range addresses {
		client := a.clients[address]
		if client == nil {
			config := rest.CopyConfig(a.config)
			config.Host = "https://" + address
			if client, err = newClient(config); err != nil {
				return nil, err
			}
			a.clients[address] = client
		}
		out = append(out, Server{Address: address, Client: client})
	}
	for address := range a.clients {
		if !slices.Contains(addresses, address) {
			delete(a.clients, address)
		}
	}
	return out, nil
}

// addresses returns the addresses of all endpoints, ready or not: a server that is shutting down still serves.
func addresses(list []*discoveryv1.EndpointSlice) []string {
	var out []string
	for _, slice := range list {
		for _, port := range slice.Ports {
			if port.Port == nil {
				continue
			}
			for _, endpoint := range slice.Endpoints {
				for _, ip := range endpoint.Addresses {
					out = append(out, net.JoinHostPort(ip, strconv.Itoa(int(*port.Port))))
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Addresses returns the addresses of servers, in the same order.
func Addresses(servers []Server) []string {
	out := make([]string, 0, len(servers))
	for _, server := range servers {
		out = append(out, server.Address)
	}
	return out
}

// everywhere runs prove for all servers in parallel. The first error cancels the others and is returned.
func everywhere(ctx context.Context, servers []Server, prove func(context.Context, Server) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, server := range servers {
		group.Go(func() error { return prove(ctx, server) })
	}
	return group.Wait()
}
