// Package openapi has the definitions of package plain. openapi-gen writes them from the types, and fieldperm-gen openapi adds the markers.
package openapi
