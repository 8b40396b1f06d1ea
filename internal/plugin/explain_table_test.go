package plugin

import (
	"bytes"
	"os"
	"regexp"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/internal/sources"
	"github.com/fieldperm/fieldperm/schema"
)

// On a terminal there are colours and marks. Without them the words are the same, so nothing depends on a colour.
func TestExplain_ColoursAddNothing(t *testing.T) {
	files := []string{"../../cmd/kubectl-fieldperm/testdata/explain/gadgets.yaml", "../../cmd/kubectl-fieldperm/testdata/explain/documents.yaml"}
	_, compiled, _, err := sources.TracedFiles(files)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][3]string{{"example.com", "Gadget", "gadgets"}, {"", "ConfigMap", "configmaps"}} {
		ref := schema.ResourceRef{Group: c[0], Version: "v1", Resource: c[2]}
		k, err := fieldtree.Of(compiled, runtimeschema.GroupVersionKind{Group: c[0], Version: "v1", Kind: c[1]}, ref)
		if err != nil {
			t.Fatal(err)
		}
		render := func(on bool) string {
			out := &text{paint: paint{on}, places: k.Verbs(), left: maxFields}
			return string(out.explain(k.Place(), true))
		}
		painted := render(true)
		if got := regexp.MustCompile("\x1b\\[[0-9;]*m|■ |◆ ").ReplaceAllString(painted, ""); got != render(false) || got == painted {
			t.Errorf("with colours\n%s\nwithout\n%s", painted, render(false))
		}
	}
}

func TestExplain_NoColorIsHonoured(t *testing.T) {
	// A device counts as a terminal.
	device, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	place := (&fieldtree.Kind{Root: &fieldtree.Node{}}).Place()
	for value, want := range map[string]bool{"": true, "1": false} {
		t.Setenv("NO_COLOR", value)
		if got := newText(device, place).paint.on; got != want {
			t.Errorf("NO_COLOR=%q: colours %t", value, got)
		}
	}
	if newText(&bytes.Buffer{}, place).paint.on {
		t.Error("there are colours without a terminal")
	}
}
