package oracle

import (
	"context"

	"github.com/fieldperm/fieldperm/schema"
)

// custom is a drawn CustomResourceDefinition.
type custom struct{ docs schema.Documents }

func (c *custom) object(_ *draw, _, _, _ string) (map[string]any, error) { return nil, nil }

func (w *world) drawDefinitions(context.Context, *draw) error { return nil }

// drawnGroup ends the groups of drawn definitions.
const drawnGroup = ".oracle.test"
