//go:build integration

package soak

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fieldperm/fieldperm/test/sender"
)

const (
	// writing is the time between two writes, and pulsing that between two pulses.
	writing = 500 * time.Millisecond
	pulsing = 250 * time.Millisecond
	// slow is how long a SubjectAccessReview may take. One takes milliseconds, and a review makes up to six, one after the other.
	slow = time.Second
)

// write makes real writes through kube-apiserver as a granular user, of which every other one is denied: kube-apiserver's own certificate for
// fieldperm is replaced too.
func (c *scene) write(ctx context.Context) {
	ticker := time.NewTicker(writing)
	defer ticker.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		body, right := fmt.Sprintf(`{"spec":{"replicas":%d}}`, i%10), sender.Allowed
		if i%2 == 1 {
			body, right = fmt.Sprintf(`{"spec":{"minReadySeconds":%d}}`, i%10), sender.Denied
		}
		o := outcome{name: "PATCH " + body, begin: time.Now(), answer: sender.Errored, right: right}
		err := within(ctx, func(ctx context.Context) error {
			_, err := c.writer.AppsV1().Deployments(namespace).Patch(ctx, "web", types.MergePatchType, []byte(body), metav1.PatchOptions{})
			return err
		})
		o.end = time.Now()
		switch {
		case err == nil:
			o.answer = sender.Allowed
		case apierrors.IsForbidden(err):
			// Without these words, the authorizers refused: for want of a proof, or because fieldperm could not be asked.
			o.answer, o.unproven = sender.Denied, !strings.Contains(err.Error(), "may not change")
		default:
			o.late = isLate(err.Error())
		}
		// kube-apiserver may be connected to a replica that ends or starts.
		o.killed = c.judge.within("replica", o.begin, o.end)
		o.detail = func() string { return fmt.Sprint(err) }
		c.judge.note(o)
	}
}

// pulse asks kube-apiserver what fieldperm asks it, and notes when that takes long: then answers of fieldperm may be late too.
func (c *scene) pulse(ctx context.Context) {
	ticker := time.NewTicker(pulsing)
	defer ticker.Stop()
	for {
		begin := time.Now()
		// An error, as while kube-apiserver is restarted, says nothing about its speed.
		err := within(ctx, func(ctx context.Context) error { return c.decides(ctx, "scaler-0", "granular:scale", true) })
		if end := time.Now(); err == nil || errors.Is(err, context.DeadlineExceeded) {
			if end.Sub(begin) > slow {
				c.judge.wasSlow(begin, end)
			}
			c.judge.settle(begin)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// within calls f with a deadline of its own: what has begun is finished.
func within(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	return f(ctx)
}

// decides returns an error unless kube-apiserver decides so about a verb on Deployments.
func (c *scene) decides(ctx context.Context, user, verb string, allowed bool) error {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
		Verb: verb, Group: "apps", Resource: "deployments", Namespace: namespace,
	}}}
	got, err := c.admin.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err == nil && got.Status.Allowed != allowed {
		err = fmt.Errorf("%s by %s: allowed is %t", verb, user, !allowed)
	}
	return err
}
