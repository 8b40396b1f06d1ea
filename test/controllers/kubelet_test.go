//go:build controllers

package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const (
	// kubeletPeriod is the time between two looks at the Pods, and heartbeat that between two renewals of a node's Lease.
	kubeletPeriod = 400 * time.Millisecond
	heartbeat     = 2 * time.Second
	leases        = "kube-node-lease"
)

// outOfService says that a node is off and that its Pods can be deleted.
var outOfService = corev1.Taint{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}

// kubelets play the kubelets of all nodes.
type kubelets struct {
	client *kubernetes.Clientset
	mu     sync.Mutex
	alive  map[string]time.Time // the last heartbeat
	end    context.CancelFunc
	ended  chan struct{}
}

func startKubelets(client *kubernetes.Clientset) *kubelets {
	ctx, cancel := context.WithCancel(context.Background())
	k := &kubelets{client: client, alive: map[string]time.Time{}, end: cancel, ended: make(chan struct{})}
	var both sync.WaitGroup
	for _, work := range []func(context.Context){k.beat, k.sync} {
		both.Go(func() {
			for ctx.Err() == nil {
				work(ctx)
				time.Sleep(kubeletPeriod)
			}
		})
	}
	go func() {
		both.Wait()
		close(k.ended)
	}()
	return k
}

func (k *kubelets) stop() {
	k.end()
	<-k.ended
}

// up starts the kubelets of nodes, and registers new ones.
func (k *kubelets) up(ctx context.Context, names ...string) error {
	for _, name := range names {
		// The annotation is the kubelet's way to leave attaching to kube-controller-manager.
		attach := map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: attach, Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64", "pool": strings.TrimRight(name, "-0123456789"),
		}}}
		if node.Labels["pool"] != "worker" {
			// Only Pods that are meant for it run there.
			node.Spec.Taints = []corev1.Taint{{Key: "pool", Effect: corev1.TaintEffectNoSchedule}}
		}
		if _, err := k.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{}); err != nil {
			if _, err := k.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
				return err
			}
		}
		k.mu.Lock()
		k.alive[name] = time.Time{}
		k.mu.Unlock()
	}
	return nil
}

// down ends the kubelets of nodes: no heartbeats, and nothing happens with their Pods.
func (k *kubelets) down(names ...string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, name := range names {
		delete(k.alive, name)
	}
}

func (k *kubelets) beat(ctx context.Context) {
	k.mu.Lock()
	due := slices.Sorted(maps.Keys(k.alive))
	due = slices.DeleteFunc(due, func(name string) bool { return time.Since(k.alive[name]) < heartbeat })
	k.mu.Unlock()
	for _, name := range due {
		now, seconds := metav1.NowMicro(), int32(40)
		lease := &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &seconds, RenewTime: &now},
		}
		if _, err := k.client.CoordinationV1().Leases(leases).Update(ctx, lease, metav1.UpdateOptions{}); err != nil {
			_, _ = k.client.CoordinationV1().Leases(leases).Create(ctx, lease, metav1.CreateOptions{})
		}
		// What fails is tried again at the next beat.
		_ = k.report(ctx, name)
		k.mu.Lock()
		if _, still := k.alive[name]; still {
			k.alive[name] = time.Now()
		}
		k.mu.Unlock()
	}
}

// report writes the status of a node, if it is not what it should be.
func (k *kubelets) report(ctx context.Context, name string) error {
	node, err := k.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil //nolint:nilerr // The node was deleted.
	}
	ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	if ready && time.Since(node.Status.Conditions[0].LastHeartbeatTime.Time) < 10*time.Second {
		return nil
	}
	now := metav1.Now()
	var conditions []corev1.NodeCondition
	for kind, status := range map[corev1.NodeConditionType]corev1.ConditionStatus{
		corev1.NodeReady: corev1.ConditionTrue, corev1.NodeMemoryPressure: corev1.ConditionFalse, corev1.NodeDiskPressure: corev1.ConditionFalse, corev1.NodePIDPressure: corev1.ConditionFalse,
	} {
		conditions = append(conditions, corev1.NodeCondition{Type: kind, Status: status, LastHeartbeatTime: now, LastTransitionTime: now, Reason: "Played"})
	}
	list := corev1.ResourceList{
		corev1.ResourceCPU: quantity.MustParse("8"), corev1.ResourceMemory: quantity.MustParse("16Gi"),
		corev1.ResourcePods: quantity.MustParse("60"), corev1.ResourceEphemeralStorage: quantity.MustParse("100Gi"),
	}
	body, err := json.Marshal(map[string]any{"status": corev1.NodeStatus{Conditions: conditions, Capacity: list, Allocatable: list}})
	if err != nil {
		return err
	}
	_, err = k.client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, body, metav1.PatchOptions{FieldManager: "kubelet"}, "status")
	return err
}

// sync does what kubelets do with the Pods of their nodes.
func (k *kubelets) sync(ctx context.Context) {
	pods, err := k.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		k.mu.Lock()
		_, alive := k.alive[pod.Spec.NodeName]
		k.mu.Unlock()
		if !alive {
			continue
		}
		if pod.DeletionTimestamp != nil {
			now := int64(0)
			uid := pod.UID
			_ = k.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &uid}})
			continue
		}
		if status := k.status(ctx, pod); status != nil {
			_ = k.patchPod(ctx, pod, status)
		}
	}
}

// status returns the next status of a Pod, nil if it stays as it is. The label "result" says how a Pod of a Job ends; the image "broken" never
// becomes ready.
func (k *kubelets) status(ctx context.Context, pod *corev1.Pod) *corev1.PodStatus {
	now := metav1.Now()
	switch pod.Status.Phase {
	case corev1.PodPending:
		if !k.attached(ctx, pod) {
			return nil
		}
		return running(pod, now)
	case corev1.PodRunning:
		images := ""
		for _, c := range pod.Status.ContainerStatuses {
			images += c.Image + " "
		}
		if !strings.Contains(images, "broken") && !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}) {
			// kube-controller-manager marks Pods of a lost node.
			return running(pod, now)
		}
		for _, c := range pod.Spec.Containers {
			if !strings.Contains(images, c.Image+" ") {
				return running(pod, now)
			}
		}
		result := pod.Labels["result"]
		if result == "" || time.Since(pod.Status.StartTime.Time) < 2*time.Second {
			return nil
		}
		return ended(pod, result, now)
	default:
		return nil
	}
}

func running(pod *corev1.Pod, now metav1.Time) *corev1.PodStatus {
	begin := pod.Status.StartTime
	if begin == nil {
		begin = &now
	}
	ready, yes := corev1.ConditionTrue, true
	var containers []corev1.ContainerStatus
	for _, c := range pod.Spec.Containers {
		works := !strings.Contains(c.Image, "broken")
		if !works {
			ready = corev1.ConditionFalse
		}
		containers = append(containers, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: c.Image, ContainerID: "played://" + c.Name, Ready: works, Started: &yes,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	status := &corev1.PodStatus{
		Phase: corev1.PodRunning, HostIP: "192.0.2.1", StartTime: begin, ContainerStatuses: containers,
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: now},
			{Type: corev1.ContainersReady, Status: ready, LastTransitionTime: now},
			{Type: corev1.PodReady, Status: ready, LastTransitionTime: now},
		},
	}
	if pod.Status.PodIP == "" {
		status.PodIP = podIP()
		status.PodIPs = []corev1.PodIP{{IP: status.PodIP}}
	}
	return status
}

func ended(pod *corev1.Pod, result string, now metav1.Time) *corev1.PodStatus {
	status := &corev1.PodStatus{Phase: corev1.PodSucceeded, Conditions: []corev1.PodCondition{
		{Type: corev1.ContainersReady, Status: corev1.ConditionFalse, Reason: "PodCompleted", LastTransitionTime: now},
		{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "PodCompleted", LastTransitionTime: now},
	}}
	code := int32(0)
	if result != "success" {
		status.Phase, code = corev1.PodFailed, 42
	}
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: c.Image, ContainerID: "played://" + c.Name,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: now}},
		})
	}
	return status
}

var addresses struct {
	sync.Mutex
	last int
}

func podIP() string {
	addresses.Lock()
	defer addresses.Unlock()
	addresses.last++
	return fmt.Sprintf("10.244.%d.%d", 200+addresses.last/250, 1+addresses.last%250)
}

// attached reports whether the volumes that another attaches are attached to the node of a Pod.
func (k *kubelets) attached(ctx context.Context, pod *corev1.Pod) bool {
	wanted := pod.Annotations["wants-attached"]
	if wanted == "" {
		return true
	}
	node, err := k.client.CoreV1().Nodes().Get(ctx, pod.Spec.NodeName, metav1.GetOptions{})
	return err == nil && slices.ContainsFunc(node.Status.VolumesAttached, func(v corev1.AttachedVolume) bool {
		return strings.Contains(string(v.Name), wanted)
	})
}

func (k *kubelets) patchPod(ctx context.Context, pod *corev1.Pod, status *corev1.PodStatus) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		return err
	}
	_, err = k.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, body, metav1.PatchOptions{FieldManager: "kubelet"}, "status")
	return err
}
