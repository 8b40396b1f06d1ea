// Package plain has the kinds of package brewery with markers of fieldperm's own form, +permission-verb:"x", which openapi-gen does not read.
// fieldperm-gen openapi adds them to the definitions. It also has a type with what the form of openapi-gen cannot say. A test compares both
// documents.
package plain

//go:generate go tool -modfile=../../../hack/tools/go.mod openapi-gen --logtostderr --go-header-file /dev/null --report-filename /dev/null --output-dir openapi --output-pkg github.com/fieldperm/fieldperm/test/aggregated/plain/openapi --output-file zz_generated.openapi.go ./v1
//go:generate go run ../../../cmd/fieldperm-gen openapi paths=./v1 --output-dir openapi
