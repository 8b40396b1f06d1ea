// Package anyvalue decides whether a user may change a field whatever the value is: yes if no value could be refused, no if every other value is
// refused, and depends in between.
//
// Start at Judge: Enter asks what lets the user write the object at all, Field decides on one field with all fields below it, and List goes
// through the kind. A decision is made of the chains of fieldtree, and of the verbs that the user holds (Holdings), which are asked for from general to
// specific, and each once. A barrier with a condition, a policy with a condition and a verb of one parameter that the value has are what the
// answer depends on. The package evaluates no condition, and reads no cluster.
package anyvalue
