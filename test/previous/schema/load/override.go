package load

import "github.com/fieldperm/fieldperm/test/previous/api/v1alpha1"

// Override combines the permission keys of a type with those of a field of the type, key by key, as it is done for OpenAPI documents. It is
// for generators that read keys from other places.
func Override(ofType, ofField v1alpha1.FieldPermission) v1alpha1.FieldPermission {
	return override(ofType, ofField)
}
