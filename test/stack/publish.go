package stack

import (
	"context"
	"fmt"
	"net"
	"strconv"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// kubernetesService is the name of the Service of the API servers.
const kubernetesService = "kubernetes"

// Publish makes the named API servers, and no others, endpoints of the Service "kubernetes". API servers normally do that themselves. But
// if several share one address, as on one machine, they are started without it.
func (s *Stack) Publish(ctx context.Context, servers ...string) error {
	return s.publish(ctx, nil, servers)
}

// PublishAt also publishes a port without an API server, or without one yet.
func (s *Stack) PublishAt(ctx context.Context, port int, servers ...string) error {
	return s.publish(ctx, []int32{int32(port)}, servers)
}

func (s *Stack) publish(ctx context.Context, ports []int32, servers []string) error {
	for _, server := range servers {
		_, port, err := net.SplitHostPort(s.HostPort(server))
		if err != nil {
			return fmt.Errorf("stack: API server %q: %w", server, err)
		}
		number, err := strconv.ParseInt(port, 10, 32)
		if err != nil {
			return fmt.Errorf("stack: API server %q: %w", server, err)
		}
		ports = append(ports, int32(number))
	}
	client, err := kubernetes.NewForConfig(s.Admin())
	if err != nil {
		return fmt.Errorf("stack: %w", err)
	}
	slices, ready := client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault), true
	published := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: kubernetesService, Labels: map[string]string{discoveryv1.LabelServiceName: kubernetesService}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{s.config.Address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
	}
	for i := range ports {
		name := fmt.Sprintf("https-%d", i)
		published.Ports = append(published.Ports, discoveryv1.EndpointPort{Name: &name, Port: &ports[i]})
	}
	if _, err = slices.Update(ctx, published, metav1.UpdateOptions{}); apierrors.IsNotFound(err) {
		_, err = slices.Create(ctx, published, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("stack: endpoints of the API servers: %w", err)
	}
	return nil
}
