package oracle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/fieldperm/fieldperm/test/store"
)

// decoded has the fields of a stored object that are needed to find its schema.
type decoded struct {
	Kind     runtimeschema.GroupVersionKind
	Metadata struct {
		Name              string   `json:"name"`
		Namespace         string   `json:"namespace"`
		DeletionTimestamp *string  `json:"deletionTimestamp"`
		Finalizers        []string `json:"finalizers"`
		ManagedFields     []struct {
			Manager   string `json:"manager"`
			Operation string `json:"operation"`
		} `json:"managedFields"`
	}
	ParentRef struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	}
}

// legacy converts a stored object in a version that no endpoint serves and no schema describes.
func legacy(raw []byte) ([]byte, error) {
	if !bytes.Contains(raw[:min(len(raw), 200)], []byte(`"apiextensions.k8s.io/v1beta1"`)) {
		return raw, nil
	}
	object, _, err := definitionCodecs.UniversalDecoder().Decode(raw, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("the stored value: %w", err)
	}
	return runtime.Encode(definitionCodecs.LegacyCodec(apiextensionsv1.SchemeGroupVersion), object)
}

// definitionCodecs convert CustomResourceDefinitions, which are stored in their oldest version.
var definitionCodecs = func() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return serializer.NewCodecFactory(scheme)
}()

// decode reads the type of a stored object. A value that is no JSON cannot be judged and is an error.
func decode(raw []byte) (*decoded, error) {
	var d struct {
		APIVersion string          `json:"apiVersion"`
		Kind       string          `json:"kind"`
		Metadata   json.RawMessage `json:"metadata"`
		Spec       struct {
			ParentRef json.RawMessage `json:"parentRef"`
		} `json:"spec"`
	}
	out := &decoded{}
	if err := json.Unmarshal(raw, &d); err != nil {
		// spec may be anything in a custom resource.
		var only struct {
			APIVersion string          `json:"apiVersion"`
			Kind       string          `json:"kind"`
			Metadata   json.RawMessage `json:"metadata"`
		}
		if again := json.Unmarshal(raw, &only); again != nil {
			return nil, fmt.Errorf("the stored value is no JSON object: %w", err)
		}
		d.APIVersion, d.Kind, d.Metadata = only.APIVersion, only.Kind, only.Metadata
	}
	if d.Kind == "" || d.APIVersion == "" {
		return nil, fmt.Errorf("the stored value has no kind: %.80q", raw)
	}
	gv, err := runtimeschema.ParseGroupVersion(d.APIVersion)
	if err != nil {
		return nil, fmt.Errorf("the stored value: %w", err)
	}
	out.Kind = gv.WithKind(d.Kind)
	if len(d.Metadata) > 0 {
		if err := json.Unmarshal(d.Metadata, &out.Metadata); err != nil {
			return nil, fmt.Errorf("the stored value: metadata: %w", err)
		}
	}
	if len(d.Spec.ParentRef) > 0 {
		_ = json.Unmarshal(d.Spec.ParentRef, &out.ParentRef) // In other kinds the field may have any type.
	}
	return out, nil
}

// Each shard owns its namespaces, every name with its prefix, and the addresses of its own network.
var (
	ownedSegment = regexp.MustCompile(`(?:^|/)s(\d+)(?:-[^/]*)?(?:/|$)`)
	ownedAddress = regexp.MustCompile(`/ipaddresses/10\.77\.(\d+)\.`)
)

// shardOf returns the shard that owns a key. An address that the API server gave to a Service belongs to the shard of the Service.
func shardOf(e *Event) (int, bool) {
	key := e.Key[min(len(store.Prefix), len(e.Key)):]
	if i := bytes.IndexByte([]byte(key), '/'); i >= 0 {
		if m := ownedSegment.FindStringSubmatch(key[i:]); m != nil {
			return number(m[1])
		}
	}
	if m := ownedAddress.FindStringSubmatch(e.Key); m != nil {
		return number(m[1])
	}
	for _, raw := range [][]byte{e.New, e.Old} {
		if !bytes.Contains(raw, []byte(`"IPAddress"`)) {
			continue
		}
		if d, err := decode(raw); err == nil {
			if m := ownedSegment.FindStringSubmatch(d.ParentRef.Namespace); m != nil {
				return number(m[1])
			}
		}
	}
	return 0, false
}

func number(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil
}
