// Package policies decides by ConditionalPolicies (KEP-5681). In the authorization phase it says whether a request is allowed, denied, or
// depends on the objects. In admission it evaluates the conditions on the objects. Both phases use the policies that are in force at that
// moment, so a decision never mixes two states of the policies.
package policies
