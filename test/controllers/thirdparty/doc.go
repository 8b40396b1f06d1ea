// Package thirdparty runs controllers of other projects, unchanged, and the operator of examples/operator, with granular verbs in place of
// update and patch. make test-controllers runs it. Their definitions and roles are those of their Go modules, see ../modules. Start at
// rollouts_test.go.
package thirdparty
