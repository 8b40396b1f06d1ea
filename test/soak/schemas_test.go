//go:build integration

package soak

import (
	"fmt"

	"github.com/fieldperm/fieldperm/test/sender"
)

const definitionForm = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gadgets.soak.example.com
  annotations:
    fieldperm.dev/permission-verbs: '{"v1":[{"path":".spec.size","verb":"soak.example.com/%s"}]}'
spec:
  group: soak.example.com
  names: {kind: Gadget, plural: gadgets}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
`

const gadgetQuery = "group=soak.example.com&kind=Gadget"

// define creates the definition, or gives its field another verb, and returns when each replica has compiled it.
func (c *scene) define(verb string) error {
	if err := c.apply(fmt.Sprintf(definitionForm, verb)); err != nil {
		return err
	}
	return c.says(gadgetQuery, "granular:soak.example.com/"+verb)
}

// createDefinition lets the makers in.
func (c *scene) createDefinition() error {
	m := c.mix
	return changing(func() error {
		if err := c.define("size"); err != nil {
			return err
		}
		return c.agreed(m.gadgetAsk, sender.Allowed)
	}, change{m.maker, sender.Allowed}, change{m.stretcher, sender.Denied}, change{m.gadgetAsk, sender.Allowed})
}

// definition gives a field of the definition another verb, deletes the definition and creates it again.
func (c *scene) definition(int) error {
	const missing = sender.Denied | sender.Errored
	m := c.mix
	if err := changing(func() error { return c.define("extent") }, change{m.maker, sender.Denied}, change{m.stretcher, sender.Allowed}); err != nil {
		return err
	}
	if err := c.hold(); err != nil {
		return err
	}
	if err := changing(func() error {
		if err := c.remove(fmt.Sprintf(definitionForm, "extent")); err != nil {
			return err
		}
		if err := c.says(gadgetQuery, ""); err != nil {
			return err
		}
		return c.agreed(m.gadgetAsk, missing)
	}, change{m.maker, missing}, change{m.stretcher, missing}, change{m.gadgetAsk, missing}); err != nil {
		return err
	}
	if err := c.hold(); err != nil {
		return err
	}
	return c.createDefinition()
}

const permissionSchemaForm = `apiVersion: fieldperm.dev/v1alpha1
kind: PermissionSchema
metadata: {name: soak}
spec:
  group: apps
  kind: Deployment
  permissions:
  - {path: .spec.paused, verb: soak.example.com/pause}
`

func (c *scene) permissionSchema(int) error {
	const of, verb = "group=apps&version=v1&kind=Deployment", "granular:soak.example.com/pause"
	if err := changing(func() error {
		if err := c.apply(permissionSchemaForm); err != nil {
			return err
		}
		return c.says(of, verb)
	}, change{c.mix.paused, sender.Allowed}); err != nil {
		return err
	}
	if err := c.hold(); err != nil {
		return err
	}
	return changing(func() error {
		if err := c.remove(permissionSchemaForm); err != nil {
			return err
		}
		return c.says(of, "!"+verb)
	}, change{c.mix.paused, sender.Denied})
}

const uncoveredSetForm = `apiVersion: fieldperm.dev/v1alpha1
kind: UncoveredPermissionSet
metadata: {name: moving}
spec:
  uncoveredPermissions: [granular:label(moving.example.com)]
  resources: [{apiGroups: [apps], resources: [deployments]}]
`

// uncoveredSet has no statement of each replica that it compiled the set: its first answer that follows the set is one.
func (c *scene) uncoveredSet(int) error {
	if err := changing(func() error {
		if err := c.apply(uncoveredSetForm); err != nil {
			return err
		}
		return c.agreed(c.mix.moving, sender.Denied)
	}, change{c.mix.moving, sender.Denied}); err != nil {
		return err
	}
	if err := c.hold(); err != nil {
		return err
	}
	return changing(func() error {
		if err := c.remove(uncoveredSetForm); err != nil {
			return err
		}
		return c.agreed(c.mix.moving, sender.Allowed)
	}, change{c.mix.moving, sender.Allowed})
}
