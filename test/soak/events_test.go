//go:build integration

package soak

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/test/cluster"
)

// checkTimeout is the timeout of a SubjectAccessReview of fieldperm here: a check may have begun that long before its decision is cached.
const checkTimeout = 8 * time.Second

// tries bounds the waiting for a process on a busy machine.
const tries = 4

// happening is one kind of event of a round.
type happening struct {
	name string
	run  func(c *scene, round int) error
}

// happenings are the events of a round, in order.
var happenings = []happening{
	{"a definition comes, changes and goes", (*scene).definition},
	{"a PermissionSchema comes and goes", (*scene).permissionSchema},
	{"an UncoveredPermissionSet comes and goes", (*scene).uncoveredSet},
	{"a permission is taken and given", (*scene).grants},
	{"the serving certificate is replaced", (*scene).servingCertificate},
	{"the callers' CA and certificate are replaced", (*scene).callersCertificate},
	{"the authorizers change", (*scene).authorizers},
	{"replica stopped", func(c *scene, round int) error { return c.restart(round, false) }},
	{"replica killed", func(c *scene, round int) error { return c.restart(round, true) }},
	{away + " restarted", (*scene).apiServer},
}

// turnOf changes truths together: it is their change until f returns, and then they are settled.
func turnOf(f func() error, changes ...change) error {
	for _, one := range changes {
		one.of.change(one.to)
	}
	if err := f(); err != nil {
		return err
	}
	for _, one := range changes {
		one.of.settle(one.to)
	}
	return nil
}

type change struct {
	of *truth
	to answers
}

const definitionForm = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gadgets.soak.example.com
  annotations:
    fieldperm.dev/permission-verbs: '{"v1":[{"path":".spec.size","verb":"soak.example.com/%s"}]}'
spec:
  group: soak.example.com
  names: {kind: Gadget, plural: gadgets}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
`

const gadgetQuery = "group=soak.example.com&kind=Gadget"

// define creates the definition, or gives its field another verb, and returns when each replica has compiled it.
func (c *scene) define(verb string) error {
	if err := c.apply(fmt.Sprintf(definitionForm, verb)); err != nil {
		return err
	}
	return c.says(gadgetQuery, "granular:soak.example.com/"+verb)
}

// createDefinition lets the makers in.
func (c *scene) createDefinition() error {
	m := c.mix
	return turnOf(func() error {
		if err := c.define("size"); err != nil {
			return err
		}
		return c.agreed(m.gadgetAsk, Allowed)
	}, change{m.maker, Allowed}, change{m.stretcher, Denied}, change{m.gadgetAsk, Allowed})
}

// definition gives a field of the definition another verb, deletes the definition and creates it again.
func (c *scene) definition(int) error {
	const missing = Denied | Errored
	m := c.mix
	if err := turnOf(func() error { return c.define("extent") }, change{m.maker, Denied}, change{m.stretcher, Allowed}); err != nil {
		return err
	}
	if err := c.hold(); err != nil {
		return err
	}
	if err := turnOf(func() error {
		if err := c.remove(fmt.Sprintf(definitionForm, "extent")); err != nil {
			return err
		}
		if err := c.says(gadgetQuery, ""); err != nil {
			return err
		}
		return c.agreed(m.gadgetAsk, missing)
	}, change{m.maker, missing}, change{m.stretcher, missing}, change{m.gadgetAsk, missing}); err != nil {
		return err
	}
	if err := c.hold(); err != nil {
		return err
	}
	return c.createDefinition()
}

const permissionSchemaForm = `apiVersion: fieldperm.dev/v1alpha1
kind: PermissionSchema
metadata: {name: soak}
spec:
  group: apps
  kind: Deployment
  permissions:
  - {path: .spec.paused, verb: soak.example.com/pause}
`

func (c *scene) permissionSchema(int) error {
	const of, verb = "group=apps&version=v1&kind=Deployment", "granular:soak.example.com/pause"
	if err := turnOf(func() error {
		return errors.Join(c.apply(permissionSchemaForm), c.says(of, verb))
	}, change{c.mix.paused, Allowed}); err != nil {
		return err
	}
	if err := c.hold(); err != nil {
		return err
	}
	return turnOf(func() error {
		return errors.Join(c.remove(permissionSchemaForm), c.says(of, "!"+verb))
	}, change{c.mix.paused, Denied})
}

const uncoveredSetForm = `apiVersion: fieldperm.dev/v1alpha1
kind: UncoveredPermissionSet
metadata: {name: moving}
spec:
  uncoveredPermissions: [granular:label(moving.example.com)]
  resources: [{apiGroups: [apps], resources: [deployments]}]
`

// uncoveredSet has no statement of each replica that it compiled the set: its first answer that follows the set is one.
func (c *scene) uncoveredSet(int) error {
	if err := turnOf(func() error {
		return errors.Join(c.apply(uncoveredSetForm), c.agreed(c.mix.moving, Denied))
	}, change{c.mix.moving, Denied}); err != nil {
		return err
	}
	if err := c.hold(); err != nil {
		return err
	}
	return turnOf(func() error {
		return errors.Join(c.remove(uncoveredSetForm), c.agreed(c.mix.moving, Allowed))
	}, change{c.mix.moving, Allowed})
}

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
		to answers
	}{{take, Denied}, {give, Allowed}} {
		var all []change
		for _, one := range changes {
			all = append(all, change{one, step.to})
		}
		if err := turnOf(func() error { return c.granted(step.do, verb, step.to, changes) }, all...); err != nil {
			return err
		}
		if err := c.hold(); err != nil {
			return err
		}
	}
	return nil
}

// granted changes permissions and returns when nothing older may count: kube-apiserver decides anew, and the TTL of cached decisions has passed.
func (c *scene) granted(do func() error, verb string, to answers, changes []*truth) error {
	if err := do(); err != nil {
		return err
	}
	if err := c.await("kube-apiserver's decision", func(ctx context.Context) error {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: "taker", ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: verb, Group: "apps", Resource: "deployments", Namespace: namespace,
		}}}
		got, err := c.admin.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err == nil && got.Status.Allowed != (to == Allowed) {
			err = errors.New("is the old one")
		}
		return err
	}); err != nil {
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

func (c *scene) servingCertificate(int) error {
	if err := c.s.RotateServing(time.Time{}); err != nil {
		return err
	}
	return c.await("the new serving certificate", func(ctx context.Context) error { return c.callers.serves(ctx, c.fleet) })
}

// callersCertificate adds a CA, replaces the certificates of the callers, and removes the CA that signed the old ones.
func (c *scene) callersCertificate(int) error {
	p := c.callers
	p.mu.Lock()
	was := p.own
	fresh, err := p.newAuthority()
	if err == nil {
		err = p.write(fresh.bundle)
	}
	p.mu.Unlock()
	if err != nil {
		return err
	}
	own, _, err := p.issue(fresh)
	if err != nil {
		return err
	}
	if err := c.await("the new certificate of callers is accepted", func(ctx context.Context) error { return p.accepted(ctx, c.fleet, own, http.StatusOK) }); err != nil {
		return err
	}
	p.mu.Lock()
	p.own = own
	p.mu.Unlock()
	c.sender.renewAll()
	// The sender reads its certificate at once, kube-apiserver does so within minutes: its CA is another one.
	p.mu.Lock()
	p.current = fresh
	err = errors.Join(p.rotateServer(), p.write())
	p.mu.Unlock()
	if err != nil {
		return err
	}
	return c.await("the old certificate of callers is refused", func(ctx context.Context) error { return p.accepted(ctx, c.fleet, was, http.StatusUnauthorized) })
}

// rotateServer replaces the certificate of kube-apiserver by one of a new CA, and retires CAs that it does not use any more.
func (c *callers) rotateServer() error {
	fresh, err := c.newAuthority()
	if err != nil {
		return err
	}
	_, pem, err := c.issue(fresh)
	if err != nil {
		return err
	}
	kept := c.retiring[:0]
	for _, one := range c.retiring {
		if one.replaced.IsZero() || time.Since(one.replaced) < reread {
			kept = append(kept, one)
		}
	}
	c.retiring = kept
	for i := range c.retiring {
		if c.retiring[i].replaced.IsZero() {
			c.retiring[i].replaced = time.Now()
		}
	}
	c.retiring = append(c.retiring, fresh)
	if err := c.write(); err != nil {
		return err
	}
	return errors.Join(replace(c.s.File("client.key"), pem[1]), replace(c.s.File("client.crt"), pem[0]))
}

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
	return c.await("the new authorizers", func(ctx context.Context) error {
		for _, one := range c.fleet.all() {
			client := client(nil, c.callers.certified())
			_, body, err := get(ctx, client, "https://"+one.address+"/metrics")
			client.CloseIdleConnections()
			if err != nil {
				return err
			}
			if !strings.Contains(body, hash) {
				return fmt.Errorf("replica %d has others", one.replica)
			}
		}
		return nil
	})
}

// restart ends a process and starts it again: the first replica in the first round only, so that its second process runs the longest.
func (c *scene) restart(round int, kill bool) error {
	number := min(round, 1)
	one := c.fleet.remove(number)
	if one == nil {
		return fmt.Errorf("replica %d is not ready", number)
	}
	if kill {
		one.killed.Store(true)
		if err := c.s.SignalReplica(number, syscall.SIGKILL); err != nil {
			return err
		}
	}
	if err := c.s.StopReplica(number); err != nil {
		return err
	}
	begin := time.Now()
	if err := c.s.LaunchReplica(number); err != nil {
		return err
	}
	for try := 1; ; try++ {
		err := c.s.AwaitReplica(c.ctx, number)
		if err == nil {
			break
		}
		if try == tries || !c.s.Running(number) {
			return err
		}
		c.t.Logf("replica %d: is not ready yet: %s after its start", number, time.Since(begin))
	}
	c.fleet.add(number, strings.TrimPrefix(c.s.ReplicaURL(number), "https://"))
	c.t.Logf("replica %d is ready %s after its start", number, time.Since(begin).Round(100*time.Millisecond))
	return nil
}

// apiServer is restarted in the second round and in every fifth one after it.
func (c *scene) apiServer(round int) error {
	if round%5 != 1 && *rounds == 0 {
		return nil
	}
	if err := c.s.Shutdown(cluster.APIServer); err != nil {
		return err
	}
	if err := c.sleep(2 * time.Second); err != nil {
		return err
	}
	for try := 1; ; try++ {
		err := c.s.Boot(c.ctx, cluster.APIServer)
		if err == nil {
			break
		}
		c.t.Logf("kube-apiserver, attempt %d: %v", try, err)
		if try == tries {
			return err
		}
		if err := c.s.Shutdown(cluster.APIServer); err != nil {
			return err
		}
	}
	return c.recovered()
}

// apply and remove change objects as the administrator.
func (c *scene) apply(manifest string) error {
	return c.kubectl(manifest, "apply", "--server-side", "--force-conflicts", "-f", "-")
}

func (c *scene) remove(manifest string) error {
	return c.kubectl(manifest, "delete", "--wait=false", "-f", "-")
}

func (c *scene) kubectl(stdin string, args ...string) error {
	admin, err := c.s.User("admin", "system:masters")
	if err != nil {
		return err
	}
	if _, stderr, err := c.s.Kubectl(admin).Run(c.ctx, stdin, args...); err != nil {
		return fmt.Errorf("kubectl %v: %w: %s", args, err, stderr)
	}
	return nil
}

// says returns when each replica says in /permissions that a kind has a verb, or with "!" that it has not; "" is that there is no such kind.
func (c *scene) says(query, verb string) error {
	return c.await("/permissions?"+query, func(ctx context.Context) error {
		for _, one := range c.fleet.all() {
			client := client(nil, c.callers.certified())
			code, body, err := get(ctx, client, "https://"+one.address+"/permissions?"+query)
			client.CloseIdleConnections()
			if err != nil {
				return err
			}
			wanted, not := strings.CutPrefix(verb, "!")
			if verb == "" && code == http.StatusNotFound || verb != "" && code == http.StatusOK && strings.Contains(body, wanted) != not {
				continue
			}
			return fmt.Errorf("replica %d: %d, want %q: %.300s", one.replica, code, verb, body)
		}
		return nil
	})
}

// agreed returns when each replica has given the new answer.
func (c *scene) agreed(of *truth, to answers) error {
	r := c.mix.about(of)
	return c.await(r.name, func(context.Context) error {
		for _, one := range c.fleet.all() {
			client := client(nil, c.callers.certified())
			got := exchangeOf(client, "https://"+one.address, r)
			client.CloseIdleConnections()
			if got.answer&to == 0 {
				return fmt.Errorf("replica %d: the answer is %s: %w", one.replica, got.answer, got.err)
			}
		}
		return nil
	})
}

// hold lets the state last for a while, so that requests meet it.
func (c *scene) hold() error { return c.sleep(*hold) }

func (c *scene) sleep(d time.Duration) error {
	select {
	case <-c.ctx.Done():
		return context.Cause(c.ctx)
	case <-time.After(d):
		return nil
	}
}
