package generate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCRD_C3_VersionsWithOtherNames: verbs that count only beside granular:* are a warning, and verbs that only one version has are an
// error where a conversion is declared lossless. A file is written in the first case only.
func TestCRD_C3_VersionsWithOtherNames(t *testing.T) {
	version := func(name, storage, field string) string {
		return "  - name: " + name + "\n    served: true\n    storage: " + storage + "\n    schema: {openAPIV3Schema: {type: object, properties: {" + field + "}}}\n"
	}
	definition := func(annotations, field string) string {
		return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: mice.example.com\n  annotations: {" + annotations + "}\n" +
			"spec:\n  group: example.com\n  scope: Cluster\n  names: {plural: mice, singular: mouse, kind: Mouse}\n  conversion: {strategy: Webhook}\n  versions:\n" +
			version("v1", "true", "replicas: {type: integer, x-kubernetes-permission-verb: scale}") + version("v1beta1", "false", field)
	}
	const (
		declared = `fieldperm.dev/lossless-conversion: "true"`
		shared   = "size: {type: integer, x-kubernetes-permission-verb: scale}"
	)
	for name, c := range map[string]struct {
		definition string
		code       int
		stderr     string
	}{
		"declared":                  {definition(declared, shared), 0, ""},
		"not declared":              {definition("", shared), 0, `warning: stdin:/spec/versions/1: the verbs of version "v1beta1" count only beside "granular:*": `},
		"declared, without sharing": {definition(declared, "size: {type: integer}"), 1, `error: stdin:/spec/versions/0/schema/openAPIV3Schema/properties/replicas: path ".replicas" of served version "v1" has verb "scale", which has no place in served version "v1beta1"`},
	} {
		out := filepath.Join(t.TempDir(), "crd.yaml")
		code, _, stderr := run(t, c.definition, "crd", "--in", "-", "--out", out)
		if code != c.code || !strings.HasPrefix(stderr, c.stderr) || c.stderr == "" && stderr != "" {
			t.Errorf("%s: exit %d, %q, want %d, %q", name, code, stderr, c.code, c.stderr)
		}
		if _, err := os.Stat(out); (err == nil) != (c.code == 0) {
			t.Errorf("%s: the file: %v", name, err)
		}
	}
}
