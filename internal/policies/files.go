package policies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kube-openapi/pkg/validation/spec"
	kjson "sigs.k8s.io/json"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/manifest"
	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/schema/load"
)

// Files returns the policies of files, and warnings. No API server publishes types, so a condition that does not fit the type of an object is
// not found. A faulty policy is an error.
func Files(ctx context.Context, paths []string) (*Set, []error, error) {
	objects, err := Read(paths)
	if err != nil {
		return nil, nil, err
	}
	return once(ctx, objects, Config{
		List:  func(context.Context) ([]*unstructured.Unstructured, error) { return objects, nil },
		Types: func() Types { return untypedFiles },
	}, "correct it")
}

func untypedFiles(endpoint.Ref) (map[string]*spec.Schema, error) { return nil, errNoServer }

// Read reads ConditionalPolicies from files or directories, as one document or several, or a v1 List of them. Any other kind is an error, and
// so is a name that occurs twice: only one of the two could decide.
func Read(paths []string) ([]*unstructured.Unstructured, error) {
	r := reader{from: map[string]string{}}
	for _, path := range paths {
		files, err := load.Paths(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w: give a file or a directory", path, err)
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("%s: %w: give a file that can be read", file, err)
			}
			documents, err := manifest.Documents(raw)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			for _, document := range documents {
				if err := r.add(file, document); err != nil {
					return nil, fmt.Errorf("%s: %w", file, err)
				}
			}
		}
	}
	return r.objects, nil
}

// reader collects policies. from has the file of each name.
type reader struct {
	objects []*unstructured.Unstructured
	from    map[string]string
}

func (r *reader) add(file string, document []byte) error {
	var head struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        metav1.ObjectMeta `json:"metadata"`
		Items           []json.RawMessage `json:"items"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(document, &head); err != nil {
		return fmt.Errorf("is no ConditionalPolicy: %w: correct it", err)
	}
	policy := metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ConditionalPolicyKind}
	switch name := head.Metadata.Name; {
	case head.TypeMeta == metav1.TypeMeta{APIVersion: "v1", Kind: "List"}:
		for _, item := range head.Items {
			if err := r.add(file, item); err != nil {
				return err
			}
		}
		return nil
	case head.TypeMeta != policy:
		return fmt.Errorf("kind %q of %q is not accepted: give ConditionalPolicies of %s", head.Kind, head.APIVersion, policy.APIVersion)
	case name == "":
		return errors.New("a ConditionalPolicy has no name: give it a metadata.name")
	case r.from[name] != "":
		return fmt.Errorf("ConditionalPolicy %q: is in %s too: remove one of the two", name, r.from[name])
	default:
		r.from[name] = file
	}
	// Values that occur twice are lost in the object.
	if _, faults := decode(v1alpha1.ConditionalPolicyKind+" "+head.Metadata.Name, document); len(faults) > 0 {
		return errors.Join(faults...)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(document); err != nil {
		return fmt.Errorf("ConditionalPolicy %q: %w: correct it", head.Metadata.Name, err)
	}
	r.objects = append(r.objects, object)
	return nil
}

// beside returns the policies of files, and those of an API server with other names.
func beside(files, stored []*unstructured.Unstructured) []*unstructured.Unstructured {
	out := slices.Clone(files)
	for _, one := range stored {
		if !slices.ContainsFunc(files, func(f *unstructured.Unstructured) bool { return f.GetName() == one.GetName() }) {
			out = append(out, one)
		}
	}
	return out
}
