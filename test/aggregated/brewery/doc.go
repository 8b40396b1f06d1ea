// Package brewery has the API of the aggregated API server of the tests: the group brewery.example.com with the kinds Keg and Formula, each
// in the versions v1 and v1beta1.
//
// It owns the internal types, to which every version is converted, and the scheme (Scheme). Start reading at types.go, then v1, which has
// the markers of permission verbs. The openapi package is generated from them. It must not import any package of fieldperm.
//
// +kubebuilder:object:generate=true
package brewery

//go:generate go tool -modfile=../../../hack/tools/go.mod controller-gen object paths=./...
//go:generate go tool -modfile=../../../hack/tools/go.mod openapi-gen --logtostderr --go-header-file /dev/null --report-filename /dev/null --output-dir openapi --output-pkg github.com/fieldperm/fieldperm/test/aggregated/brewery/openapi --output-file zz_generated.openapi.go --output-model-name-file zz_generated.model_name.go ./v1 ./v1beta1
