// Package recipes plays every recipe of docs/guide/recipes.md on the real control plane, as a holder of its Role with bad
// intentions.
//
// It owns testdata/writes.yaml: for each kind that a recipe is about, writes that an attacker would try, and for each
// recipe those of them that its title promises. All others must be refused. Roles and barriers are the page's own, so that
// what a reader copies is what is tried. Start reading at the table, then at TestRecipes.
package recipes
