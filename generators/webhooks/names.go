package webhooks

// These are the names of objects in the cluster. Other programs and administrators refer to them.
const (
	// RESTName is the ValidatingWebhookConfiguration that enforces the Allows of /authorize, if it is an object of the cluster.
	RESTName = "fieldperm"

	// UncoveredName is the ValidatingWebhookConfiguration for the resources with barriers. fieldperm maintains it.
	UncoveredName = "fieldperm-uncovered"

	// ObservedName is the ValidatingWebhookConfiguration for observations and for sets that do not refuse writes. fieldperm maintains it.
	ObservedName = "fieldperm-observed"

	// GuardName is the ValidatingAdmissionPolicy that protects both configurations, and its binding.
	GuardName = "fieldperm-guard"

	// Finalizer keeps RESTName enforcing after its deletion, until fieldperm releases it.
	Finalizer = "fieldperm.dev/enforcement"

	// GranularWebhook is the name of the webhook that enforces the Allows of /authorize.
	GranularWebhook = "granular.fieldperm.dev"

	// UncoveredWebhookName is the name of the webhook for the resources with barriers.
	UncoveredWebhookName = "uncovered.fieldperm.dev"

	// ObservationsWebhook is the name of the webhook for PermissionObservations, and TrialsWebhook that for UncoveredPermissionSets whose
	// actions let writes pass.
	ObservationsWebhook = "observations.fieldperm.dev"
	TrialsWebhook       = "trials.fieldperm.dev"

	// SchemasWebhook is the name of the webhook that refuses permission schemas that do not compile.
	SchemasWebhook = "schemas.fieldperm.dev"

	// ProbeWebhook is the name of the webhook that only fieldperm's own probe reaches. Its path names the state of the configuration: see State.
	ProbeWebhook = "probe.fieldperm.dev"

	// WriterAnnotation is an annotation of UncoveredName with the version of the fieldperm that wrote it.
	WriterAnnotation = "fieldperm.dev/written-by"

	// APIServersSlice is the EndpointSlice, in the namespace default, in which kube-apiservers register themselves. They write one, and no other: a slice
	// that has only the label of the Service may be anybody's.
	APIServersSlice = "kubernetes"

	// AuthorizerName is the name of fieldperm's authorizer in kube-apiserver's AuthorizationConfiguration.
	AuthorizerName = "fieldperm"

	// NameLabel is a label of every object that is installed in the cluster, with RESTName as its value.
	NameLabel = "app.kubernetes.io/name"

	staticName = "fieldperm.static.k8s.io"
)

// These are the URL paths of the webhooks, relative to fieldperm's address.
const (
	GranularPath  = "/admit/granular"
	UncoveredPath = "/admit/uncovered"
	SchemasPath   = "/admit/schemas"
	ObservedPath  = "/admit/observed"
	TriedPath     = "/admit/tried"
	// ProbePath is followed by the state of the configuration.
	ProbePath = "/probe/"
)
