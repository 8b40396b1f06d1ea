//go:build integration

package corpus

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
)

// recordedWith is the minor of the kube-apiserver whose reviews are recorded. Others have other fields and defaults: only their answers are compared.
var recordedWith = version.MajorMinor(1, 37)

func (p *plane) isRecorded() bool {
	return p.version.Major() == recordedWith.Major() && p.version.Minor() == recordedWith.Minor()
}

// lacks returns what a scenario needs and the API server does not serve, "" if nothing. The newest serves everything.
func (p *plane) lacks(s *Scenario) (string, error) {
	if p.isRecorded() {
		return "", nil
	}
	client, err := discovery.NewDiscoveryClientForConfig(p.stack.Admin())
	if err != nil {
		return "", err
	}
	group := s.Resource.GroupVersion().String()
	list, err := client.ServerResourcesForGroupVersion(group)
	if apierrors.IsNotFound(err) {
		return fmt.Sprintf("kube-apiserver %s does not serve %s", p.version, group), nil
	}
	if err != nil {
		return "", err
	}
	served := map[string]bool{}
	for i := range list.APIResources {
		served[list.APIResources[i].Name] = true
	}
	names := []string{s.Resource.Resource}
	for i := range s.Steps {
		if sub := s.Steps[i].Subresource; sub != "" {
			names = append(names, s.Resource.Resource+"/"+sub)
		}
	}
	for _, name := range names {
		if !served[name] {
			return fmt.Sprintf("kube-apiserver %s does not serve %s of %s", p.version, name, group), nil
		}
	}
	return "", nil
}
