package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/internal/page"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/load"
)

// objectNames is a kind whose names are those of properties of every object in JavaScript.
const objectNames = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: constructors.example.com
  annotations:
    fieldperm.dev/permission-verbs: |
      {"v1": [{"path": ".spec", "verb": "specification"}, {"path": ".spec.__proto__", "verb": "example.com/constructor"}, {"path": ".spec.toString", "verb": "example.com/toString"}]}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Constructor, plural: constructors, singular: constructor}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {
      __proto__: {type: string}, constructor: {type: string}, toString: {type: string}, hasOwnProperty: {type: object, properties: {__proto__: {type: string}}}}}}}}}
`

// TestAccess_NamesOfObjectsOfJavaScript: fields and subjects may have any names. A page of many subjects has all of them.
func TestAccess_NamesOfObjectsOfJavaScript(t *testing.T) {
	file := filepath.Join(t.TempDir(), "names.yaml")
	must(t, os.WriteFile(file, []byte(objectNames), 0o600))
	documents, errs := load.Files([]string{file})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	documents.Traced = true
	compiled, errs := compile.Compile(documents)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	f := fieldtree.New(compiled)
	of := &page.Access{Kind: f.Kinds[0], Object: "shop/__proto__", Subjects: []page.Subject{{Kind: "User", Name: "__proto__"}, {Kind: "User", Name: "constructor"}, {Kind: "Group", Name: "toString"}}, Paths: map[string][]page.Holder{
		"":                               {{Subject: 2, How: "generic"}},
		".spec.__proto__":                {{Subject: 0, How: "granular", Through: "constructor"}},
		".spec.constructor":              {},
		".spec.hasOwnProperty.__proto__": {{Subject: 1, How: "conditional", Through: "__proto__"}},
	}}
	for i := range 1000 {
		of.Subjects = append(of.Subjects, page.Subject{Kind: "User", Name: fmt.Sprintf("user-%d", i)})
		of.Paths[".spec.toString"] = append(of.Paths[".spec.toString"], page.Holder{Subject: len(of.Subjects) - 1, How: "granular", Through: "valueOf"})
	}
	content, err := page.RenderAccess("Names", page.Notes{}, f, of)
	must(t, err)
	p := openFile(t, content)
	p.visit("#path=.spec.hasOwnProperty.__proto__")
	p.contains(row(".__proto__"), "○ granular: User __proto__", "? conditional: User constructor")
	p.contains(row(".constructor"), "✕ no subject")
	p.contains(row(".toString"), "○ 1000 granular")
	p.contains(row(".hasOwnProperty"), "1 generic")
	p.contains(details, "? conditional 1", "User constructor", "__proto__")
	p.visit("#kind=__proto__&path=constructor&verb=__proto__&show=toString&subject=__proto__")
	p.contains(`document.getElementById("heading").innerText`, "Constructor shop/__proto__")
	p.visit("#path=.spec&subject=User+__proto__")
	p.contains(treeText, ".__proto__")
	p.visit("#path=%3Cimg%20src=x%20onerror=alert(1)%3E&subject=%3Cimg%20src=x%20onerror=alert(1)%3E&verb=%3Cimg%20src=x%20onerror=alert(1)%3E")
	p.expect(`document.querySelectorAll("img").length`, "0")
}
