// Package lint finds faults in the documents that give fields their verbs: CustomResourceDefinitions in both forms, PermissionSchemas and
// UncoveredPermissionSets. The documents may be valid; a finding is what their author probably does not mean.
//
// Start at Rules, which are all rules, then at Run. It reads files into objects with the places of their YAML nodes (object.go), compiles
// them, and applies the rules: one file for each group of rules. Fix applies what has one fix. What concerns the name of a verb or of a field alone is in
// internal/lint/convention, which the analyzer for Go types shares.
//
// The package reads no file and no cluster, and prints nothing. It must not import generators.
package lint
