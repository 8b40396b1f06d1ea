// Package docs holds the documentation to the code: links lead somewhere, every rule is explained and
// shown, and what stands in YAML is made of verbs that exist. It has tests only.
package docs
