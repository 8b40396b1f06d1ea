//go:build controllers

package trial_test

import (
	"fmt"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/test/controllers/trial"
)

const bot = "system:serviceaccount:ops:bot"

// TestProve moves a bot, whose part the test plays, from update to the verbs of what it writes.
func TestProve(t *testing.T) {
	(&trial.Trial{
		Name:    "bot",
		Observe: []v1alpha1.Subject{{Kind: "ServiceAccount", Namespace: "ops", Name: "bot"}},
		Flags:   func(string) []string { return []string{"--generalize", "condition"} },
		Prepare: func(r *trial.Run) {
			role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "bot"}, Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{""}, Resources: []string{"configmaps", "replicationcontrollers", "replicationcontrollers/scale"}, Verbs: []string{"get", "create", "update", "patch"}},
			}}
			_, err := r.Client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
			trial.Must(t, err)
			_, err = r.Client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: "bot"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "bot"},
				Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ops", Name: "bot"}},
			}, metav1.CreateOptions{})
			trial.Must(t, err)
		},
		Play: func(r *trial.Run) {
			r.Apply("testdata/scaled.yaml")
			client, err := kubernetes.NewForConfig(r.User(bot).Config)
			trial.Must(t, err)
			_, err = client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "progress"}}, metav1.CreateOptions{})
			trial.Must(t, err)
			for n := range 3 {
				r.Again("the bot scales", func() error {
					_, err := client.CoreV1().ReplicationControllers("default").UpdateScale(t.Context(), "scaled", &autoscalingv1.Scale{
						ObjectMeta: metav1.ObjectMeta{Name: "scaled", Namespace: "default"}, Spec: autoscalingv1.ScaleSpec{Replicas: int32(n)},
					}, metav1.UpdateOptions{})
					return err
				})
				config, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "progress", metav1.GetOptions{})
				trial.Must(t, err)
				config.Data = map[string]string{"replicas": fmt.Sprint(n)}
				_, err = client.CoreV1().ConfigMaps("default").Update(t.Context(), config, metav1.UpdateOptions{})
				trial.Must(t, err)
			}
			r.Until("replicationcontrollers", "default/scaled", "spec.replicas", "2")
		},
	}).Prove(t)
}
