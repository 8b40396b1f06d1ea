package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is that of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "fieldperm.dev", Version: "v1alpha1"}

// The kinds, and the resources under which an API server serves them.
const (
	PermissionSchemaKind           = "PermissionSchema"
	PermissionSchemaResource       = "permissionschemas"
	UncoveredPermissionSetKind     = "UncoveredPermissionSet"
	UncoveredPermissionSetResource = "uncoveredpermissionsets"
	ConditionalPolicyKind          = "ConditionalPolicy"
	ConditionalPolicyResource      = "conditionalpolicies"
	PermissionObservationKind      = "PermissionObservation"
	PermissionObservationResource  = "permissionobservations"
)

// AddToScheme makes the kinds known to a scheme, for typed clients.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &PermissionSchema{}, &PermissionSchemaList{}, &UncoveredPermissionSet{}, &UncoveredPermissionSetList{},
		&ConditionalPolicy{}, &ConditionalPolicyList{},
		&PermissionObservation{}, &PermissionObservationList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
