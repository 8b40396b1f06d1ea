// Package controller has the markers of a controller, for tests.
package controller

// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets,verbs=get;list;watch;create;update;patch
// +kubebuilder:rbac:groups=apps,resources=deployments/status,verbs=get
// +kubebuilder:rbac:groups=core,resources=configmaps,namespace=infrastructure,roleName=infra,verbs=get;update;patch
// +kubebuilder:rbac:groups=example.com;apps,resources=widgets;widgets/status,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=example.com,resources=widgets/finalizers,verbs=update
// +kubebuilder:rbac:urls=/metrics,verbs=get

// +fieldperm:rbac:groups=apps,resources=deployments,fields=.spec.replicas;.metadata.labels["super.safe.com/*"],versions=v1

// Reconcile is where kubebuilder puts the markers. A marker in the comment of a declaration counts for fieldperm too.
// +fieldperm:rbac:groups=example.com,resources=widgets,fields={`.spec.size`,".spec.tags[\"a;b,c}\"]"}
//
//	+fieldperm:rbac:groups="core",resources=configmaps,fields=.data["x"],verbs=update;patch
//
// +fieldperm:rbac:groups=example.com,resources=widgets/status,fields=.status.size
func Reconcile() {
	// +fieldperm:rbac:groups=apps,resources=deployments,fields=.spec.template.spec.containers[name="web"].image
	const undefined = undeclared // A type error is no fault of the markers.
}
