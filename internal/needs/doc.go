// Package needs finds the verbs that a user needs for one write, which of them the user holds, and a smallest set to ask for, in one answer.
// A decision (package admission) ends at the first verb that is missing. Find goes on: it adds verbs to those of the user until the
// decision is Allow, so that the decision itself proves that the set is enough.
//
// Start at Find. Smallest leaves out what is not needed. Objects renders sets of verbs as RBAC objects. The package reads no cluster and no flags.
package needs
