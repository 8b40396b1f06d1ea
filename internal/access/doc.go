// Package access answers which subjects may change a field, and by which grants.
//
// Start at New, which takes the RBAC objects of a cluster and its policies, and Cluster.WhoCan. The answer has a row for each subject that a
// binding or a policy names. A subject is taken as a user who is only this subject, with the groups that such a user always has (Subject.User).
// hold.go finds out how a user holds one verb, ways.go combines verbs to ways to change the field (C1, C2, C5, C6), and objects.go does so for
// the objects that a question is about: all of a kind, or those of some names and namespaces. Of reads the answers for all fields of a kind.
//
// internal/rbac decides which rule allows a verb. internal/fieldtree says which verbs cover a field. The package reads nothing from a cluster.
package access
