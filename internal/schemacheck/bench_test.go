package schemacheck_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/test/schematest"
)

// BenchmarkCompileSetOnPods compiles the built-in kinds with a set of 256 verbs about Pods: labels, images and all verbs that Pods have.
// none is the same without the set.
func BenchmarkCompileSetOnPods(b *testing.B) {
	docs := schematest.Documents(b)
	var texts []string
	for i := range 128 {
		texts = append(texts, fmt.Sprintf("'granular:label(example%d.com)', 'granular:image(c%d)'", i, i))
	}
	set := schematest.Decode(b, "set", setOf(strings.Join(texts, ", "), "{apiGroups: [''], resources: [pods]}", ""))
	for _, c := range []struct {
		name string
		docs compile.Documents
	}{{"none", docs}, {"256 verbs", docs.Append(set)}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, errs := compile.Compile(c.docs); len(errs) > 0 {
					b.Fatal(errs)
				}
			}
		})
	}
}
