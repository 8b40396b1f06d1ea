//go:build controllers

package thirdparty

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// playWorkloads plays kube-controller-manager and the kubelets for ReplicaSets and Jobs: every Pod is ready at once, and a Job whose image
// ends with ":bad" fails. Pods get numbers for names, so that two runs have the same. It returns what ends it.
func playWorkloads(client kubernetes.Interface) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			// What fails is tried again: the controller under test writes the same objects.
			_ = playReplicaSets(ctx, client)
			_ = playJobs(ctx, client)
			time.Sleep(300 * time.Millisecond)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

func playReplicaSets(ctx context.Context, client kubernetes.Interface) error {
	sets, err := client.AppsV1().ReplicaSets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	list, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	pods := map[types.UID]map[string]*corev1.Pod{}
	for i := range list.Items {
		if owner := metav1.GetControllerOf(&list.Items[i]); owner != nil {
			if pods[owner.UID] == nil {
				pods[owner.UID] = map[string]*corev1.Pod{}
			}
			pods[owner.UID][list.Items[i].Name] = &list.Items[i]
		}
	}
	for i := range sets.Items {
		// One that fails does not keep the others waiting.
		err = errors.Join(err, playReplicaSet(ctx, client, &sets.Items[i], pods[sets.Items[i].UID]))
	}
	return err
}

func playReplicaSet(ctx context.Context, client kubernetes.Interface, set *appsv1.ReplicaSet, have map[string]*corev1.Pod) error {
	replicas, made := *set.Spec.Replicas, int32(0)
	for n := range replicas {
		name := fmt.Sprintf("%s-%d", set.Name, n)
		if have[name] != nil {
			delete(have, name)
			continue
		}
		made++
		pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
		pod.Name = name
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
		if _, err := client.CoreV1().Pods(set.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			return err
		}
		ready := `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`
		if _, err := client.CoreV1().Pods(set.Namespace).Patch(ctx, name, types.StrategicMergePatchType, []byte(ready), metav1.PatchOptions{}, "status"); err != nil {
			return err
		}
	}
	for name := range have {
		if err := client.CoreV1().Pods(set.Namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	if made == 0 && set.Status.Replicas == replicas && set.Status.ObservedGeneration == set.Generation {
		return nil
	}
	// Pods that are replaced are not ready for a moment.
	for _, ready := range []int32{replicas - made, replicas} {
		status := fmt.Sprintf(`{"status":{"replicas":%d,"fullyLabeledReplicas":%[1]d,"readyReplicas":%d,"availableReplicas":%[2]d,"observedGeneration":%d}}`, replicas, ready, set.Generation)
		if _, err := client.AppsV1().ReplicaSets(set.Namespace).Patch(ctx, set.Name, types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status"); err != nil {
			return err
		}
	}
	return nil
}

func playJobs(ctx context.Context, client kubernetes.Interface) error {
	jobs, err := client.BatchV1().Jobs("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range jobs.Items {
		job := &jobs.Items[i]
		if job.Status.StartTime != nil {
			continue
		}
		now := metav1.Now()
		ending := func(kinds ...batchv1.JobConditionType) (out []batchv1.JobCondition) {
			for _, kind := range kinds {
				out = append(out, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, LastProbeTime: now, LastTransitionTime: now})
			}
			return out
		}
		job.Status = batchv1.JobStatus{StartTime: &now, CompletionTime: &now, Succeeded: 1, Conditions: ending(batchv1.JobSuccessCriteriaMet, batchv1.JobComplete)}
		if strings.HasSuffix(job.Spec.Template.Spec.Containers[0].Image, ":bad") {
			job.Status = batchv1.JobStatus{StartTime: &now, Failed: 1, Conditions: ending(batchv1.JobFailureTarget, batchv1.JobFailed)}
		}
		if _, err := client.BatchV1().Jobs(job.Namespace).UpdateStatus(ctx, job, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	return nil
}
