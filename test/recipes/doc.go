// Package recipes tests every recipe of docs/guide/recipes.md on the real control plane, as a malicious user with its Role.
//
// It owns testdata/writes.yaml: for each kind of a recipe the writes that an attacker would try, and for each recipe the writes that its
// title promises. All others must be refused. Roles and barriers come from the page, so that the test uses exactly what a reader copies.
// Start reading at the table, then at TestRecipes.
package recipes
