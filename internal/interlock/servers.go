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

// All returns Servers with every address that the kube-apiservers have registered. slice returns their EndpointSlice from an informer.
func All(config *rest.Config, slice func() (*discoveryv1.EndpointSlice, error)) Servers {
	return newServers(config, func() ([]string, error) {
		registered, err := slice()
		if err != nil {
			return nil, fmt.Errorf("EndpointSlice default/kubernetes: %w", err)
		}
		addresses := SliceAddresses(registered)
		if len(addresses) == 0 {
			return nil, errors.New("EndpointSlice default/kubernetes: has no address: see that kube-apiserver does not run with --endpoint-reconciler-type=none, or name the servers by --api-servers")
		}
		return addresses, nil
	})
}

// Listed returns Servers with these addresses, each host:port.
func Listed(config *rest.Config, addresses []string) Servers {
	return newServers(config, func() ([]string, error) { return addresses, nil })
}

// newServers returns Servers whose addresses may change.
func newServers(config *rest.Config, addresses func() ([]string, error)) Servers {
	out := &servers{config: rest.CopyConfig(config), addresses: addresses, clients: map[string]rest.Interface{}}
	if out.config.ServerName == "" {
		out.config.ServerName = serviceName
	}
	return out.current
}

type servers struct {
	config    *rest.Config
	addresses func() ([]string, error)

	mu      sync.Mutex
	clients map[string]rest.Interface
}

func (s *servers) current() ([]Server, error) {
	addresses, err := s.addresses()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Server, 0, len(addresses))
	for _, address := range addresses {
		client := s.clients[address]
		if client == nil {
			config := rest.CopyConfig(s.config)
			config.Host = "https://" + address
			if client, err = newClient(config); err != nil {
				return nil, err
			}
			s.clients[address] = client
		}
		out = append(out, Server{Address: address, Client: client})
	}
	for address := range s.clients {
		if !slices.Contains(addresses, address) {
			delete(s.clients, address)
		}
	}
	return out, nil
}

// SliceAddresses returns the addresses of all endpoints, host:port each, ready or not: a server that is shutting down still serves. A nil slice has none.
func SliceAddresses(slice *discoveryv1.EndpointSlice) []string {
	if slice == nil {
		return nil
	}
	var out []string
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
