//go:build integration

package soak

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/fieldperm/fieldperm/test/sender"
)

// checkTimeout is the timeout of a SubjectAccessReview of fieldperm here: a check may have begun that long before its decision is cached.
const checkTimeout = 8 * time.Second

// grants takes a verb, the marker or the binding in turn.
func (c *scene) grants(round int) error {
	set := func(verbs string) func() error {
		return func() error {
			return c.apply("{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: taker, namespace: soak}, rules: [" + takerRules(verbs) + "]}")
		}
	}
	const binding = `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: taker, namespace: soak}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: taker}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: taker}]}`
	m, give := c.mix, set(takerVerbs)
	var take func() error
	verb := "granular:scale"
	changes := []*truth{m.scale, m.marker}
	switch round % 3 {
	case 0:
		take, changes = set("granular"), []*truth{m.scale}
	case 1:
		take, verb = set(`"granular:scale"`), "granular"
	case 2:
		take, give = func() error { return c.remove(binding) }, func() error { return c.apply(binding) }
	}
	for _, step := range []struct {
		do func() error
		to sender.Answer
	}{{take, sender.Denied}, {give, sender.Allowed}} {
		var all []change
		for _, one := range changes {
			all = append(all, change{one, step.to})
		}
		if err := changing(func() error { return c.granted(step.do, verb, step.to, changes) }, all...); err != nil {
			return err
		}
		if err := c.hold(); err != nil {
			return err
		}
	}
	return nil
}

// granted changes permissions and returns when nothing older may count: kube-apiserver decides anew, and the TTL of cached decisions has passed.
func (c *scene) granted(do func() error, verb string, to sender.Answer, changes []*truth) error {
	if err := do(); err != nil {
		return err
	}
	if err := c.await("kube-apiserver's decision", func(ctx context.Context) error { return c.decides(ctx, "taker", verb, to == sender.Allowed) }); err != nil {
		return err
	}
	until := time.Now().Add(*ttl + checkTimeout)
	for _, one := range changes {
		if err := c.agreed(one, to); err != nil {
			return err
		}
	}
	return c.sleep(time.Until(until))
}

// authorizationFile is fieldperm's AuthorizationConfiguration.
const authorizationFile = "authorization.yaml"

const chainForm = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n%s"

// rbacEntry decides in process. It is in each chain, because a reload cannot add it.
const rbacEntry = "- {type: RBAC, name: rbac}\n"

// serverEntry decides by SubjectAccessReviews.
func serverEntry() string {
	return fmt.Sprintf("- type: Webhook\n  name: in-cluster-authorizer\n  webhook: {authorizedTTL: %s, unauthorizedTTL: %s, timeout: %s, subjectAccessReviewVersion: v1, failurePolicy: Deny, connectionInfo: {type: InClusterConfig}}\n", *ttl, *ttl, checkTimeout)
}

// authorizers lets RBAC in process decide alone, or SubjectAccessReviews first, in turn. The answers are the same.
func (c *scene) authorizers(round int) error {
	entry := rbacEntry
	if round%2 == 1 {
		entry = serverEntry() + rbacEntry
	}
	content := fmt.Appendf(nil, chainForm, entry)
	if err := replace(c.s.File(authorizationFile), content); err != nil {
		return err
	}
	hash := fmt.Sprintf("sha256:%x", sha256.Sum256(content))
	return c.eachReplica("the new authorizers", func(ctx context.Context, using *http.Client, url string) error {
		_, body, err := get(ctx, using, url+"/metrics")
		if err == nil && !strings.Contains(body, hash) {
			err = errors.New("has others")
		}
		return err
	})
}
