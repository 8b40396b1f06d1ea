package policies

import (
	"slices"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/internal/conditions/expression"
	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// Barriers returns the names of the policies that may deny a request to some user, as Barrier does. Subjects and conditions count as true.
func (s *Set) Barriers(req *admissionv1.AdmissionRequest) []string {
	if s == nil {
		return nil
	}
	addressed := admission.RequestedResource(req)
	ref := endpoint.Ref{Group: addressed.Group, Resource: addressed.Resource, Subresource: addressed.Subresource}
	var out []string
	for _, verb := range verbsOf(req.Operation) {
		for _, p := range s.byVerb[verb] {
			if p.decides.Effect == expression.Deny && p.matches(&ref) && !slices.Contains(out, p.barrier) {
				out = append(out, p.barrier)
			}
		}
	}
	return out
}

// verbsOf returns the verbs that a request with an operation may need.
func verbsOf(operation admissionv1.Operation) []string {
	switch operation {
	case admissionv1.Create, admissionv1.Connect:
		return []string{"create"}
	case admissionv1.Update:
		return []string{"update", "patch"}
	case admissionv1.Delete:
		return []string{"delete", "deletecollection"}
	}
	return nil
}
