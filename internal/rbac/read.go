package rbac

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/fieldperm/fieldperm/internal/manifest"

	"github.com/fieldperm/fieldperm/schema/load"
)

// Files reads Roles, ClusterRoles and bindings from YAML and JSON files, or from all such files in directories. It returns an
// authorizer that decides by them. Objects of other API groups are skipped, so that a complete manifest can be given. Any fault of
// an RBAC object is an error.
func Files(paths []string) (*Authorizer, error) {
	g, err := Read(paths)
	if err != nil {
		return nil, err
	}
	return New(g)
}

// Read reads the grants of files and directories; see Files.
func Read(paths []string) (Grants, error) {
	var all Grants
	for _, path := range paths {
		files, err := load.Paths(path)
		if err != nil {
			return Grants{}, fmt.Errorf("grants: %w: name a file or a directory that can be read", err)
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				return Grants{}, fmt.Errorf("grants: %w: name a file or a directory that can be read", err)
			}
			g, err := Decode(file, raw)
			if err != nil {
				return Grants{}, err
			}
			all.Append(g)
		}
	}
	return all, nil
}

// Decode reads the grants of one or more documents, JSON or YAML. source is their name in errors.
func Decode(source string, raw []byte) (Grants, error) {
	documents, err := manifest.Documents(raw)
	if err != nil {
		return Grants{}, fmt.Errorf("grants: %s: %w", source, err)
	}
	d, err := newDecoder()
	if err != nil {
		return Grants{}, err
	}
	for i, document := range documents {
		if err := d.object(document); err != nil {
			return Grants{}, fmt.Errorf("grants: %s: document %d: %w", source, i+1, err)
		}
	}
	if err := d.out.Validate(); err != nil {
		return Grants{}, fmt.Errorf("grants: %s: %w", source, err)
	}
	return d.out, nil
}

type decoder struct {
	strict runtime.Decoder
	out    Grants
}

func newDecoder() (*decoder, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{rbacv1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return &decoder{strict: serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()}, nil
}

// object adds one JSON object, or the items of a list, to the grants.
func (d *decoder) object(raw []byte) error {
	var meta metav1.TypeMeta
	if err := json.Unmarshal(raw, &meta); err != nil {
		return fmt.Errorf("is no Kubernetes object: %w: correct the file", err)
	}
	if meta.Kind == "" || meta.APIVersion == "" {
		return errors.New("is no Kubernetes object: give it an apiVersion and a kind")
	}
	gvk := runtimeschema.FromAPIVersionAndKind(meta.APIVersion, meta.Kind)
	if gvk != corev1.SchemeGroupVersion.WithKind("List") && gvk.Group != rbacv1.GroupName {
		return nil
	}
	object, _, err := d.strict.Decode(raw, nil, nil)
	if runtime.IsNotRegisteredError(err) {
		return fmt.Errorf("kind %q of %q is not known: use %q and Role, ClusterRole, RoleBinding or ClusterRoleBinding", meta.Kind, meta.APIVersion, rbacv1.SchemeGroupVersion)
	}
	if err != nil {
		return fmt.Errorf("%s: %w: correct the object", meta.Kind, err)
	}
	switch o := object.(type) {
	case *corev1.List:
		for i := range o.Items {
			if err := d.object(o.Items[i].Raw); err != nil {
				return fmt.Errorf("items[%d]: %w", i, err)
			}
		}
	case *rbacv1.RoleList:
		d.out.Roles = append(d.out.Roles, o.Items...)
	case *rbacv1.ClusterRoleList:
		d.out.ClusterRoles = append(d.out.ClusterRoles, o.Items...)
	case *rbacv1.RoleBindingList:
		d.out.RoleBindings = append(d.out.RoleBindings, o.Items...)
	case *rbacv1.ClusterRoleBindingList:
		d.out.ClusterRoleBindings = append(d.out.ClusterRoleBindings, o.Items...)
	default:
		if !d.out.add(object) {
			return fmt.Errorf("kind %q grants nothing: use Role, ClusterRole, RoleBinding or ClusterRoleBinding", meta.Kind)
		}
	}
	return nil
}
