// Package audit finds faults in RBAC objects that are about fieldperm: verbs that no field has, verbs without the marker, wildcards that
// pass barriers, and barriers that are not enforced.
//
// Start at Rules, which are all rules, then at Scan.Run: it reads the objects of a Source, first those that name verbs of fieldperm, and then
// only what the subjects of these hold besides. Rules about one Role report while it is read (role*.go). Rules about what a subject holds in
// total come last (joint*.go). Known answers what a permission schema says about a verb on a resource.
//
// The package reads no cluster and no file, and prints nothing. Sources are functions of its callers.
package audit
