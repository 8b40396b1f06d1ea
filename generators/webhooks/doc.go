// Package webhooks has the objects and rules by which a kube-apiserver calls fieldperm: the webhook configurations and their match
// conditions (configuration.go), the policy that guards them (guard.go), the conditions and times of the authorizer (authorizer.go),
// and the names of all these (names.go). Package generators writes them into files; the running server compares them with those that
// are in force, and maintains some of them.
//
// Start reading at GranularConfiguration. Uncovered computes the rules that the barriers in schemas need; Union and Subtract combine
// such rules; SetEndpoints and KindEndpoints return the endpoints of one barrier. Functions return objects and do not check options.
// The package imports schema and lower packages. It also imports admission, for the parts that both must agree on: the floor and keys
// of extra. It never imports internal or cmd.
package webhooks
