package interlock

import (
	"errors"
	"slices"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/rest"
)

func slice(port int32, ips ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{Ports: []discoveryv1.EndpointPort{{Port: &port}, {}}}
	no := false
	for _, ip := range ips {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{ip}, Conditions: discoveryv1.EndpointConditions{Ready: &no}})
	}
	return s
}

func TestA5_EveryAddressOfTheServiceIsAsked(t *testing.T) {
	registered := slice(6443, "10.0.0.2", "10.0.0.1", "2001:db8::1", "10.0.0.1")
	var fails error
	servers := All(&rest.Config{Host: "https://elsewhere"}, func() (*discoveryv1.EndpointSlice, error) { return registered, fails })
	got := func() (out []string) {
		known, err := servers()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range known {
			out = append(out, s.Address)
		}
		return out
	}
	if want := []string{"10.0.0.1:6443", "10.0.0.2:6443", "[2001:db8::1]:6443"}; !slices.Equal(got(), want) {
		t.Errorf("got %q", got())
	}
	before, _ := servers()
	registered = slice(6443, "10.0.0.2", "10.0.0.1")
	if want := []string{"10.0.0.1:6443", "10.0.0.2:6443"}; !slices.Equal(got(), want) {
		t.Errorf("got %q", got())
	}
	if after, _ := servers(); after[0].Client != before[0].Client {
		t.Error("every round makes new connections")
	}
	for _, registered = range []*discoveryv1.EndpointSlice{nil, slice(6443)} {
		if _, err := servers(); err == nil {
			t.Error("no server is no error")
		}
	}
	if fails = errors.New("forbidden"); fails != nil {
		if _, err := servers(); err == nil {
			t.Error("a list that fails is no error")
		}
	}
}

func TestA5_OwnServerIsThatOfTheConfiguration(t *testing.T) {
	servers, err := Own(&rest.Config{Host: "https://127.0.0.1:6443/"})
	if err != nil {
		t.Fatal(err)
	}
	if known, err := servers(); err != nil || len(known) != 1 || known[0].Address != "127.0.0.1:6443" {
		t.Errorf("%v, %v", known, err)
	}
}

func TestA5_NamedServersAreAsked(t *testing.T) {
	known, err := Listed(&rest.Config{Host: "https://elsewhere"}, []string{"10.0.0.1:6443", "[2001:db8::1]:6443"})()
	if err != nil || !slices.Equal(Addresses(known), []string{"10.0.0.1:6443", "[2001:db8::1]:6443"}) {
		t.Errorf("%q, %v", Addresses(known), err)
	}
}
