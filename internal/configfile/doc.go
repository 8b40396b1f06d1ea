// Package configfile reads AuthorizationConfiguration and AuthenticationConfiguration files, and the kubeconfigs that they name. It
// reports every fault with its line, its field and a cure.
//
// k8s.io/apiserver decides what is valid: its types, defaults, strict decoder and validation. client-go does for kubeconfigs. This
// package adds the line of each fault, the cure, the rules of fieldperm's own chain, and warnings about what is valid and hardly
// meant. Reading has these steps. A file whose syntax is wrong is not decoded; otherwise all steps report what they find:
//
//   - document.go: the text is one YAML or JSON document, and YAML drops nothing of it
//   - decode.go: fields and values fit the types; a fault of validation gets the line of its path, and its cure in cures.go
//   - authorization.go, authentication.go: validation, and rules that k8s.io/apiserver does not have
//   - kubeconfig.go: the connections of webhooks
//   - mapping.go: the types of mapped claims
//   - warnings.go, summary.go: what a valid file says
//
// Start at LoadAuthorization and LoadAuthentication. The package sends no request, and reads only the files that the configuration
// names. Of fieldperm it imports only the dialects of conditions and the spelling of names.
package configfile
