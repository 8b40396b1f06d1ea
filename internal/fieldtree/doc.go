// Package fieldtree is a permission schema as a tree to look at: kinds, their fields with types, and for each field its verbs, what they
// let their holder do, where barriers are, and which source says so.
//
// Start at New and Of, which make a Forest and a Kind of a compiled schema. Kind.Find leads to a place, Place.Chains are its verbs from
// general to specific. The package reads a *schema.Schema of a traced compile and nothing else. It decides nothing and writes nothing:
// internal/plugin prints the trees, internal/page renders them.
package fieldtree
