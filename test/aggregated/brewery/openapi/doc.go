// Package openapi has the OpenAPI definitions of the group brewery.example.com. openapi-gen writes them from the types. Definitions adds
// those of Kubernetes' own types, which apiextensions-apiserver ships.
package openapi
