package store

import (
	"bytes"
	"fmt"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Decode returns a stored object as JSON values. Integers are int64. A value that is no JSON object is an error: either the API server
// stores it in another form, or it is no object.
func Decode(value []byte) (map[string]any, error) {
	if bytes.HasPrefix(value, []byte("k8s\x00")) {
		return nil, fmt.Errorf("stored object: is protobuf: start kube-apiserver with the flag storage-media-type=application/json")
	}
	if bytes.HasPrefix(value, []byte("k8s:enc:")) {
		return nil, fmt.Errorf("stored object: is encrypted: start kube-apiserver without the flag encryption-provider-config")
	}
	if bytes.HasPrefix(value, []byte{0xd9, 0xd9, 0xf7}) {
		return nil, fmt.Errorf("stored object: is CBOR: start kube-apiserver with the feature gate CBORServingAndStorage=false")
	}
	var out map[string]any
	if err := utiljson.Unmarshal(value, &out); err != nil {
		return nil, fmt.Errorf("stored object: %w", err)
	}
	if out == nil {
		return nil, fmt.Errorf("stored object: %.40q is no JSON object", value)
	}
	return out, nil
}

// Object is the information that a key contains about its object.
type Object struct {
	// Prefix is the part of the key that all objects of one storage share, without slashes at its ends:
	// "pods", "services/specs", "apps.example.com/widgets".
	Prefix string
	// Namespace is empty for cluster-scoped objects.
	Namespace, Name string
}

// Split takes a key of an object apart: the name is its last part, and the namespace, if the object has one, the
// one before. It is false if the key is not that of the object.
func Split(key, namespace, name string) (Object, bool) {
	rest, ok := strings.CutPrefix(key, Prefix)
	if !ok {
		return Object{}, false
	}
	tail := "/" + name
	if namespace != "" {
		tail = "/" + namespace + tail
	}
	prefix, ok := strings.CutSuffix(rest, tail)
	if !ok || prefix == "" {
		return Object{}, false
	}
	return Object{Prefix: prefix, Namespace: namespace, Name: name}, true
}
