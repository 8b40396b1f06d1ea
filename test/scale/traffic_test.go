//go:build integration

package scale

import (
	"flag"
	"time"
)

// The size of the cluster. The defaults are the small form.
var (
	nodes       = flag.Int("nodes", 200, "nodes")
	controllers = flag.Int("controllers", 12, "operators that hold granular verbs only")
	definitions = flag.Int("definitions", 8, "CustomResourceDefinitions of 200 fields each")
	bindings    = flag.Int("bindings", 200, "Roles, and as many bindings")
	objects     = flag.Int("objects", 10, "objects of each operator")
	replicas    = flag.Int("replicas", 2, "replicas of fieldperm-webhook")
	inProcess   = flag.Bool("rbac", false, "RBAC in process instead of SubjectAccessReviews")
	duration    = flag.Duration("duration", 3*time.Second, "how long each phase lasts")
)

// churn is the largest number of Pods that are made, changed or deleted and of requests of users, a second, in steady state:
// kubernetes/community, sig-scalability/slos/slos.md. The load test of kubernetes/perf-tests (clusterloader2/testing/load/config.yaml) makes
// 10 Pods a second by default; each is deleted too. Smaller clusters have as much less as they have fewer nodes.
const churn = 20.0

// write is a kind of write in a cluster.
type write struct {
	name string
	// rate is how many there are in a second.
	rate float64
	// reaches is whether fieldperm reviews it.
	reaches bool
}

// traffic returns the writes of a cluster in steady state.
func traffic(nodes, controllers int) []write {
	n, c := float64(nodes), float64(controllers)
	busy := churn * n / 5000
	return []write{
		{lease, n / 10, false},       // The kubelet renews after a quarter of the 40 s of nodeLeaseDurationSeconds.
		{nodeStatus, n / 300, false}, // nodeStatusReportFrequency is 5 minutes.
		{podStatus, 2 * busy, false}, // Four for each Pod: initialized, ready, terminating, terminated.
		{podCreate, busy / 2, false},
		{podBind, busy / 2, false},
		{podDelete, busy / 2, false},
		{event, 5 * busy / 2, false},     // Five for each Pod: scheduled, pulled, created, started, killing.
		{leader, c / 2, false},           // retryPeriod of client-go's leader election is 2 s.
		{workloadStatus, 3 * busy, true}, // The status of a ReplicaSet, a Deployment and an EndpointSlice for each change of a Pod.
		{customResource, c, true},        // An assumption: each operator writes once a second.
		{userWrite, busy / 2, true},      // An assumption.
	}
}

// The names of the writes.
const (
	lease          = "Lease of a node, by its kubelet"
	nodeStatus     = "status of a Node, by its kubelet"
	podStatus      = "status of a Pod, by its kubelet"
	podCreate      = "a new Pod, by the ReplicaSet controller"
	podBind        = "binding of a Pod, by the scheduler"
	podDelete      = "deletion of a Pod, by the ReplicaSet controller"
	event          = "Event, by a kubelet"
	leader         = "Lease of a leader election, by an operator"
	workloadStatus = "status of a Deployment, by a controller with granular verbs"
	customResource = "custom resource, by an operator with granular verbs"
	userWrite      = "Deployment, by a user with granular verbs"
)

// reviewed returns the reviews in a second.
func reviewed(all []write) float64 {
	sum := 0.0
	for _, w := range all {
		if w.reaches {
			sum += w.rate
		}
	}
	return sum
}
