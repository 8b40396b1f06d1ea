package generators

// The names of what lies in the cluster. Other programs and people look for them.
const (
	// RESTName is the ValidatingWebhookConfiguration that enforces what an Allow of /authorize
	// promises, where it is an object of the cluster.
	RESTName = "fieldperm"

	// UncoveredName is the ValidatingWebhookConfiguration for the resources with barriers, which
	// fieldperm keeps itself.
	UncoveredName = "fieldperm-uncovered"

	// GuardName is the ValidatingAdmissionPolicy that protects both, and its binding.
	GuardName = "fieldperm-guard"

	// Finalizer keeps RESTName enforcing after it was deleted, until fieldperm has let go.
	Finalizer = "fieldperm.dev/interlock"

	// GranularWebhook is the name of the webhook that enforces what an Allow of /authorize promises.
	GranularWebhook = "granular.fieldperm.dev"

	// UncoveredWebhookName is the name of the webhook for the resources with barriers.
	UncoveredWebhookName = "uncovered.fieldperm.dev"

	// SchemasWebhook is the name of the webhook that refuses permission schemas that do not compile.
	SchemasWebhook = "schemas.fieldperm.dev"

	// WriterAnnotation is on UncoveredName: the version of the fieldperm that wrote it.
	WriterAnnotation = "fieldperm.dev/written-by"

	// AuthorizerName is fieldperm's in kube-apiserver's AuthorizationConfiguration.
	AuthorizerName = "fieldperm"

	// NameLabel is on what is installed into the cluster, with RESTName as its value.
	NameLabel = "app.kubernetes.io/name"

	staticName = "fieldperm.static.k8s.io"
)

// The paths of the webhooks below fieldperm's address.
const (
	GranularPath  = "/admit/granular"
	UncoveredPath = "/admit/uncovered"
	SchemasPath   = "/admit/schemas"
)
