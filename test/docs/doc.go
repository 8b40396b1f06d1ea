// Package docs compares the documentation with the code: links lead to existing pages, every rule is explained and shown, and the YAML
// examples use verbs that exist. It has tests only.
package docs
