//go:build integration

package soak

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// write makes two real writes a second through kube-apiserver as a granular user, one that may be and one that may not: the callers'
// certificate of kube-apiserver changes too.
func (c *scene) write(ctx context.Context) {
	user, err := c.s.User("scaler-0")
	must(c.t, err)
	writer, err := kubernetes.NewForConfig(user.Config)
	must(c.t, err)
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for i := 0; ; i++ {
		for body, right := range map[string]answers{
			fmt.Sprintf(`{"spec":{"replicas":%d}}`, i%10): Allowed,
			fmt.Sprintf(`{"spec":{"paused":true,"minReadySeconds":%d}}`, i%10+1): Denied,
		} {
			o := outcome{name: "PATCH " + body, begin: time.Now(), answer: Errored, right: right}
			call, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
			_, err := writer.AppsV1().Deployments(namespace).Patch(call, "web", types.MergePatchType, []byte(body), metav1.PatchOptions{})
			cancel()
			o.end = time.Now()
			switch {
			case err == nil:
				o.answer = Allowed
			case apierrors.IsForbidden(err):
				// The authorizer refuses for want of a proof, or when it could not be asked.
				o.answer, o.unproven = Denied, !strings.Contains(err.Error(), "may not change")
			}
			// kube-apiserver may be connected to a replica that ends or starts.
			o.killed = c.judge.within("replica", o.begin, o.end)
			o.detail = func() string { return fmt.Sprint(err) }
			c.judge.note(o)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
