package generators

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/load"
)

const (
	// maxEntries is the maximum of entries that the API server accepts in one PermissionSchema.
	maxEntries = 512
	// maxEntryBytes bounds the entries of one PermissionSchema as JSON, so that the object fits into etcd's limit of 1.5 MiB.
	maxEntryBytes = 512 * 1024
	// partPrefix begins the names of the PermissionSchemas of a definition. Of two objects about one path the one with the later name counts: the
	// prefix sorts before the names that administrators give, so that what the author says does not lift a barrier of theirs.
	partPrefix = "0--"
)

// permissionSchemas returns all permissions as PermissionSchemas: one for the versions that have the same permissions, or several if these
// are too many for one object.
func (d *definition) permissionSchemas() (*File, error) {
	var b bytes.Buffer
	n := 0
	for _, versions := range d.alikeVersions() {
		for _, entries := range parts(d.permissions[versions[0]]) {
			name := partPrefix + d.crd.Name
			if n++; n > 1 {
				name = fmt.Sprintf("%s-%d", name, n)
			}
			object := map[string]any{
				"apiVersion": v1alpha1.GroupVersion.String(), "kind": "PermissionSchema", "metadata": map[string]any{"name": name},
				"spec": v1alpha1.PermissionSchemaSpec{Group: d.crd.Spec.Group, Kind: d.crd.Spec.Names.Kind, Versions: versions, Permissions: entries},
			}
			raw, err := yaml.Marshal(object)
			if err != nil {
				return nil, d.fault("", "%v", err)
			}
			b.WriteString("---\n")
			b.Write(raw)
		}
	}
	return &File{Name: d.permissionsName(), Data: b.Bytes()}, nil
}

// alikeVersions groups the versions that have the same permissions.
func (d *definition) alikeVersions() [][]string {
	var out [][]string
	for _, version := range slices.Sorted(maps.Keys(d.permissions)) {
		i := slices.IndexFunc(out, func(group []string) bool { return slices.Equal(d.permissions[group[0]], d.permissions[version]) })
		if i < 0 {
			out = append(out, []string{version})
			continue
		}
		out[i] = append(out[i], version)
	}
	return out
}

// parts divides the permissions of one version. Those that emit parameters come first, because an object is refused while nothing emits the
// parameter that a verb of it takes.
func parts(permissions []v1alpha1.FieldPermission) [][]v1alpha1.FieldPermission {
	permissions = slices.Clone(permissions)
	slices.SortStableFunc(permissions, func(a, b v1alpha1.FieldPermission) int { return emission(a) - emission(b) })
	var out [][]v1alpha1.FieldPermission
	size := 0
	for _, p := range permissions {
		raw, err := json.Marshal(p)
		if len(out) == 0 || err != nil || size+len(raw) > maxEntryBytes || len(out[len(out)-1]) == maxEntries {
			out, size = append(out, nil), 0
		}
		out[len(out)-1] = append(out[len(out)-1], p)
		size += len(raw)
	}
	return out
}

// emission is 0 for permissions that emit a parameter, 1 for others.
func emission(p v1alpha1.FieldPermission) int {
	if p.ParameterSource != "" {
		return 0
	}
	return 1
}

// compileParts compiles a definition together with its PermissionSchemas.
func (d *definition) compileParts(c Converted) []error {
	catalogue, err := load.Catalogue(false)
	if err != nil {
		return []error{err}
	}
	docs, errs := load.Decode(d.source, c.CRD.Data)
	more, faults := load.Decode(c.Permissions.Name, c.Permissions.Data)
	if errs = append(errs, faults...); len(errs) > 0 {
		return errs
	}
	_, errs = compile.Compile(compile.Documents{Permissions: catalogue}.Append(docs).Append(more))
	return errs
}
