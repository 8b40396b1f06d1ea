// Package refusal reads what a refused write was told: the message of a client, an event of an audit log, or an AdmissionReview with its
// response. It is the reverse of fieldperm.Denial.Message, and reads kube-apiserver's own message of a missing permission too.
//
// Start at Parse. It claims nothing that the text does not say: quoted names are read as Go strings, so that a name cannot pass for another
// part of the message, and a Refusal whose text is not the grammar of fieldperm is Unclear. causes.go says what a refusal means, and grant.go
// what would lift it. The package asks no cluster.
package refusal
