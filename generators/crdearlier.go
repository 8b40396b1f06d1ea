package generators

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	yamlv3 "go.yaml.in/yaml/v3"
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
	var out []string
	decoder := yamlv3.NewDecoder(bytes.NewReader(raw))
	for {
		var document yamlv3.Node
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		text, err := yamlv3.Marshal(&document)
		if err != nil {
			return nil, err
		}
		var object struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		}
		if err := yaml.Unmarshal(text, &object); err != nil {
			return nil, err
		}
		if name := object.Metadata.Name; name != "" {
			out = append(out, name)
		}
	}
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
