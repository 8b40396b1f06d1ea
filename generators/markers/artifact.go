package markers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"

	"sigs.k8s.io/controller-tools/pkg/crd"
	"sigs.k8s.io/controller-tools/pkg/genall"
	"sigs.k8s.io/controller-tools/pkg/loader"
	"sigs.k8s.io/yaml"
)

// artifact is one file that controller-gen's generator has written.
type artifact struct {
	name string
	// header is the text before the document, from the option headerFile.
	header string
	body   bytes.Buffer
	writes int
}

// artifacts keeps files in memory instead of writing them.
type artifacts []*artifact

var _ genall.OutputRule = &artifacts{}

// Open implements genall.OutputRule.
func (a *artifacts) Open(_ *loader.Package, name string) (io.WriteCloser, error) {
	out := &artifact{name: name}
	*a = append(*a, out)
	return out, nil
}

// Write takes the header first and the document then, as genall's WriteYAML writes them.
func (a *artifact) Write(p []byte) (int, error) {
	a.writes++
	if a.writes == 1 {
		a.header = string(p)
		return len(p), nil
	}
	return a.body.Write(p)
}

// Close implements io.Closer.
func (a *artifact) Close() error { return nil }

// plainCRDs returns the definitions that controller-gen writes. Its own annotation has the version of the running program, which is not
// controller-gen here.
func plainCRDs(ctx *genall.GenerationContext, generator crd.Generator) (artifacts, []error) {
	var out artifacts
	inMemory := *ctx
	inMemory.OutputRule = &out
	omit := generator.OmitToolVersion != nil && *generator.OmitToolVersion
	omitHere := true
	generator.OmitToolVersion = &omitHere
	failed := generate(generator, &inMemory)
	errs := append(packageErrors(ctx.Roots), failed...)
	if omit || len(errs) > 0 {
		return out, errs
	}
	for _, file := range out {
		tree, err := file.tree()
		if err != nil {
			return nil, []error{err}
		}
		setAnnotation(tree, "controller-gen.kubebuilder.io/version", toolVersion())
		raw, err := document(tree)
		if err != nil {
			return nil, []error{fmt.Errorf("%s: %w", file.name, err)}
		}
		file.body.Reset()
		file.body.Write(raw)
	}
	return out, nil
}

// toolVersion returns the version of controller-tools in this program.
func toolVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	for _, module := range info.Deps {
		if module.Path == "sigs.k8s.io/controller-tools" {
			return module.Version
		}
	}
	return "(unknown)"
}

func setAnnotation(definition map[string]any, key, value string) {
	metadata, _ := definition["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if annotations == nil {
		annotations = map[string]any{}
		metadata["annotations"] = annotations
	}
	annotations[key] = value
}

// tree decodes the document, and checks that encoding it again gives the same bytes: so what is added is the only difference.
func (a *artifact) tree() (map[string]any, error) {
	raw, err := yaml.YAMLToJSONStrict(a.body.Bytes())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.name, err)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var tree map[string]any
	if err := decoder.Decode(&tree); err != nil {
		return nil, fmt.Errorf("%s: %w", a.name, err)
	}
	if again, err := document(tree); err != nil || !bytes.Equal(again, a.body.Bytes()) {
		return nil, fmt.Errorf("%s: controller-gen's document is not the same when it is written again (%w): generate it with controller-gen, and use fieldperm-gen crd --in", a.name, err)
	}
	return tree, nil
}

// document encodes a tree as controller-gen does.
func document(tree map[string]any) ([]byte, error) {
	raw, err := yaml.Marshal(tree)
	return append([]byte("---\n"), raw...), err
}
