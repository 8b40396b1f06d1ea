package bench

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// madeAt is the time at which all objects here were created; changed is the time of the request.
func madeAt() metav1.Time { return metav1.NewTime(time.Date(2026, 1, 1, 8, 0, 0, 0, time.UTC)) }

func changedAt() metav1.Time { return metav1.NewTime(madeAt().Add(26 * time.Hour)) }

// shape is the shape of a Deployment.
type shape struct {
	// containers is the number of containers, and variables the number of variables in each. 0 containers is one empty container.
	containers, variables int
	// notes is the length of an annotation, which fills up the size.
	notes int
	// edition is in every value that is no key, so that two editions have no other value in common.
	edition int
}

// deployment is a Deployment as kubectl apply and the controllers wrote it.
func (s shape) deployment() *appsv1.Deployment {
	labels := map[string]string{"app.kubernetes.io/name": "storefront", "app.kubernetes.io/part-of": "shop"}
	spec := appsv1.DeploymentSpec{
		Replicas: new(int32(3 + s.edition)), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template:             corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: s.pod()},
		RevisionHistoryLimit: new(int32(10 + s.edition)), ProgressDeadlineSeconds: new(int32(600 + s.edition)),
		Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
			MaxUnavailable: new(intstr.FromString(s.text("%d%%", 25))), MaxSurge: new(intstr.FromString(s.text("%d%%", 25))),
		}},
	}
	d := &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{Kind: "Deployment", APIVersion: "apps/v1"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "storefront", Namespace: "shop", UID: "6f1c2a3e-6d1b-4f5e-9a51-0d7f3c9b2e10", ResourceVersion: "184467", Generation: 7,
			CreationTimestamp: madeAt(), Labels: labels,
			Annotations: map[string]string{"deployment.kubernetes.io/revision": fmt.Sprint(4 + s.edition), lastApplied: s.applied(spec)},
		},
		Spec: spec,
		Status: appsv1.DeploymentStatus{
			ObservedGeneration: 7, Replicas: int32(3 + s.edition), UpdatedReplicas: int32(3 + s.edition), ReadyReplicas: int32(3 + s.edition), AvailableReplicas: int32(3 + s.edition),
			Conditions: []appsv1.DeploymentCondition{
				s.condition(appsv1.DeploymentAvailable, "MinimumReplicasAvailable", "Deployment has minimum availability."),
				s.condition(appsv1.DeploymentProgressing, "NewReplicaSetAvailable", "ReplicaSet storefront-5d8f7c6b9 has successfully progressed."),
			},
		},
	}
	if s.notes > 0 {
		d.Annotations["example.com/notes"] = prose(s.notes, s.edition)
	}
	return d
}

// text and number differ from edition to edition.
func (s shape) text(format string, number int) string { return fmt.Sprintf(format, number+s.edition) }

func (s shape) condition(kind appsv1.DeploymentConditionType, reason, message string) appsv1.DeploymentCondition {
	at := metav1.NewTime(madeAt().Add(time.Duration(s.edition) * time.Hour))
	status := []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse}[s.edition%2]
	return appsv1.DeploymentCondition{Type: kind, Status: status, Reason: s.text(reason+"%d", 1), Message: s.text(message+" Seen %d times.", 1), LastUpdateTime: at, LastTransitionTime: at}
}

// applied is the annotation of kubectl apply: the applied object in a string.
func (s shape) applied(spec appsv1.DeploymentSpec) string {
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]string{"name": "storefront", "namespace": "shop"}, "spec": spec,
	})
	if err != nil {
		panic(err)
	}
	return string(raw) + "\n"
}

func (s shape) pod() corev1.PodSpec {
	pod := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyAlways, TerminationGracePeriodSeconds: new(int64(30 + s.edition)),
		DNSPolicy:          []corev1.DNSPolicy{corev1.DNSClusterFirst, corev1.DNSDefault}[s.edition%2],
		ServiceAccountName: s.text("storefront-%d", 1), DeprecatedServiceAccount: s.text("storefront-%d", 1),
		SecurityContext: &corev1.PodSecurityContext{}, SchedulerName: s.text("scheduler-%d", 1),
	}
	for i := range max(s.containers, 1) {
		pod.Containers = append(pod.Containers, s.container(i))
		if s.containers == 0 {
			continue
		}
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: fmt.Sprintf("config-%d", i), VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: s.text("storefront-config-%d", i)}, DefaultMode: new(int32(420 + s.edition)),
		}}})
	}
	return pod
}

func (s shape) container(i int) corev1.Container {
	c := corev1.Container{
		Name: fmt.Sprintf("component-%d", i), Image: s.text("registry.example.com/shop/component:v1.%d", i),
		TerminationMessagePath: s.text("/dev/termination-log-%d", 0), TerminationMessagePolicy: corev1.TerminationMessageReadFile, ImagePullPolicy: corev1.PullIfNotPresent,
	}
	if s.edition%2 == 1 {
		c.TerminationMessagePolicy, c.ImagePullPolicy = corev1.TerminationMessageFallbackToLogsOnError, corev1.PullAlways
	}
	if s.containers == 0 {
		return c
	}
	c.Args = []string{s.text("--log-level=%d", 2), s.text("--listen=0.0.0.0:%d", 8080+i), s.text("--feature-gates=Checkout=true,Basket%d=false", i)}
	c.Ports = []corev1.ContainerPort{{Name: s.text("http-%d", i), ContainerPort: int32(8080 + i), Protocol: corev1.ProtocolTCP}}
	for v := range s.variables {
		c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("SHOP_SETTING_%d", v), Value: s.text("https://service.shop.svc.cluster.local:8443/api/v1/%d", v)})
	}
	amount := func(cpu, memory int) corev1.ResourceList {
		return corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(cpu+s.edition), resource.DecimalSI),
			corev1.ResourceMemory: *resource.NewQuantity(int64(memory+s.edition)<<20, resource.BinarySI),
		}
	}
	c.Resources = corev1.ResourceRequirements{Limits: amount(500, 255), Requests: amount(101, 127)}
	c.VolumeMounts = []corev1.VolumeMount{{Name: s.text("config-%d", i), ReadOnly: s.edition%2 == 0, MountPath: fmt.Sprintf("/etc/component-%d", i)}}
	probe := func(path string, seconds int) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: s.text(path+"%d", i), Port: intstr.FromString(s.text("http-%d", i)), Scheme: corev1.URISchemeHTTP}},
			PeriodSeconds: int32(seconds + s.edition), TimeoutSeconds: int32(1 + s.edition), SuccessThreshold: 1, FailureThreshold: int32(3 + s.edition),
		}
	}
	c.LivenessProbe, c.ReadinessProbe = probe("/livez/", 10), probe("/readyz/", 5)
	return c
}

// prose is a text of the given number of bytes, as users write it into annotations.
func prose(n, edition int) string {
	sentence := fmt.Sprintf("Edition %d: ask in the channel of the shop before you change this. ", edition)
	return strings.Repeat(sentence, n/len(sentence)+1)[:n]
}

// scale is the Scale that kubectl scale writes through the subresource.
func scale(replicas int32) *autoscalingv1.Scale {
	return &autoscalingv1.Scale{
		TypeMeta:   metav1.TypeMeta{Kind: "Scale", APIVersion: "autoscaling/v1"},
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "6f1c2a3e-6d1b-4f5e-9a51-0d7f3c9b2e10", ResourceVersion: "184467", CreationTimestamp: madeAt()},
		Spec:       autoscalingv1.ScaleSpec{Replicas: replicas},
		Status:     autoscalingv1.ScaleStatus{Replicas: 3, Selector: "app=web"},
	}
}
