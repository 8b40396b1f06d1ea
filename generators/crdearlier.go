package generators

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fieldperm/fieldperm/internal/manifest"
)

// Earlier checks the file of PermissionSchemas that an earlier run has written beside the definition; content is nil if there is none. Objects
// that this run does not write any more win over the annotation where they are installed, so that a new barrier of the annotation would have no
// effect. They are an error.
func (f CRDFiles) Earlier(content []byte) error {
	if content == nil {
		return nil
	}
	var now []string
	if f.Permissions != nil {
		now, _ = objectNames(f.Permissions.Data)
	}
	before, err := objectNames(content)
	if err != nil {
		return fmt.Errorf("file %q of an earlier run: cannot be read: %w: see which objects it has, delete them in each cluster after the new definition is installed, delete the file, and run again", f.PermissionsName, err)
	}
	left := slices.DeleteFunc(before, func(name string) bool { return slices.Contains(now, name) })
	if len(left) == 0 && f.Permissions != nil {
		return nil
	}
	return fmt.Errorf("file %q of an earlier run: has PermissionSchemas that this run does not write, and that win over what it writes: delete the file and run again, install the result, and then delete them in each cluster: kubectl delete permissionschemas %s",
		f.PermissionsName, strings.Join(left, " "))
}

// objectNames returns the names of the objects in a file.
func objectNames(raw []byte) ([]string, error) {
	documents, err := manifest.Documents(raw)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, document := range documents {
		var object struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		}
		if err := json.Unmarshal(document, &object); err != nil {
			return nil, err
		}
		if name := object.Metadata.Name; name != "" {
			out = append(out, name)
		}
	}
	return out, nil
}

// permissionsName returns the name of the file of PermissionSchemas.
func (d *definition) permissionsName() string {
	return fmt.Sprintf("%s_%s.permissions.yaml", d.crd.Spec.Group, d.crd.Spec.Names.Plural)
}

// names checks the names of which names of files and objects are made. An API server refuses others.
func (d *definition) names() []error {
	var out []error
	group, plural := d.crd.Spec.Group, d.crd.Spec.Names.Plural
	if faults := validation.IsDNS1123Subdomain(group); len(faults) > 0 {
		out = append(out, d.fault("/spec/group", "%q is no group: %s: write one such as example.com", group, faults[0]))
	}
	if faults := validation.IsDNS1035Label(plural); len(faults) > 0 {
		out = append(out, d.fault("/spec/names/plural", "%q is no name of a resource: %s: write one such as gadgets", plural, faults[0]))
	}
	if name := plural + "." + group; len(out) == 0 && d.crd.Name != name {
		out = append(out, d.fault("/metadata/name", "%q is not the name of the resource and its group: write %q", d.crd.Name, name))
	}
	return out
}
