package plugin

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/metadata"

	"github.com/fieldperm/fieldperm/internal/tighten"
)

// readLogs reads audit logs one after another, with progress on a terminal. It returns as gaps what could not be read.
func (o *tightening) readLogs(ctx context.Context, subject tighten.Subject, files []string, visit func(ev *tighten.Event)) (gaps []string, err error) {
	for _, file := range files {
		counts, err := o.readLog(ctx, subject, file, visit)
		if err != nil {
			return nil, fmt.Errorf("audit log %q: %w", file, err)
		}
		o.sources = append(o.sources, fmt.Sprintf("audit log %s: %s", file, counts))
		for _, gap := range counts.Gaps() {
			gaps = append(gaps, fmt.Sprintf("audit log %q: %s", file, gap))
		}
	}
	return gaps, nil
}

func (o *tightening) readLog(ctx context.Context, subject tighten.Subject, file string, visit func(ev *tighten.Event)) (*tighten.LogCounts, error) {
	in := o.streams.In
	size := int64(0)
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("%w: name a file that can be read", err)
		}
		defer opened.Close() //nolint:errcheck // Nothing was written.
		if info, err := opened.Stat(); err == nil && info.Mode().IsRegular() {
			size = info.Size()
		}
		in = opened
	}
	p := o.newProgress("MiB", 1<<20)
	defer p.clear()
	log := tighten.Log{Subject: subject, Visit: visit}
	err := log.Read(ctx, p.reader(in, file, size))
	return &log.Counts, err
}

// sample is a written object with its UID in the log.
type sample struct {
	resource runtimeschema.GroupVersionResource
	object   tighten.Object
	uid      string
}

// maxSamples is how many live objects are compared with a log.
const maxSamples = 50

// sample remembers the last objects of a log, because these are the most likely to exist still. The ServiceAccount that wrote them is one: a
// controller may write only objects that are about to be deleted.
func (o *tightening) sample(ev *tighten.Event) {
	if namespace, name, err := serviceaccount.SplitUsername(ev.User); err == nil && ev.UserUID != "" {
		o.remember(sample{corev1.SchemeGroupVersion.WithResource("serviceaccounts"), tighten.Object{Namespace: namespace, Name: name}, ev.UserUID})
	}
	if name, subresource := ev.Resource.Split(); subresource == "" && ev.UID != "" && !ev.DryRun {
		o.remember(sample{runtimeschema.GroupVersionResource{Group: ev.Resource.Group, Version: ev.Version, Resource: name}, ev.Object, ev.UID})
	}
}

func (o *tightening) remember(s sample) {
	for i := range o.samples {
		if o.samples[i].resource == s.resource && o.samples[i].object == s.object {
			o.samples[i] = s
			return
		}
	}
	if len(o.samples) == maxSamples {
		o.samples = o.samples[1:]
	}
	o.samples = append(o.samples, s)
}

// otherCluster says if a log seems to be of another cluster, "" if not. One object that is the same is enough. The last are the most likely to
// exist, so they are looked at first.
func (k *knownCluster) otherCluster(ctx context.Context, samples []sample) string {
	if k.metadata == nil {
		return ""
	}
	var other, gone int
	for _, s := range slices.Backward(samples) {
		object, err := resourceOf(k.metadata, s).Get(ctx, s.object.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			gone++
		case err != nil:
			// The user of the command may not read it.
		case string(object.UID) == s.uid:
			return ""
		default:
			other++
		}
	}
	if other+gone == 0 {
		return ""
	}
	return fmt.Sprintf("the audit log seems to be of another cluster: of %d objects in it none has its UID here, %d have another one, %d do not exist: use a log of this cluster", other+gone, other, gone)
}

func resourceOf(client metadata.Interface, s sample) metadata.ResourceInterface {
	if s.object.Namespace == "" {
		return client.Resource(s.resource)
	}
	return client.Resource(s.resource).Namespace(s.object.Namespace)
}

// replay simulates logs, and returns ErrRefusals if any write would be refused.
func (o *tightening) replay(ctx context.Context, proposal *tighten.Proposal) error {
	simulation := tighten.NewSimulation(proposal)
	o.sources = nil
	gaps, err := o.readLogs(ctx, proposal.Subject, o.simulate, func(ev *tighten.Event) {
		if refused := simulation.Judge(ev); refused != nil {
			o.say("line %d, %s: %s %s %s %s would be refused: it needs %s", refused.Line, refused.Time.UTC().Format(time.RFC3339), refused.User, refused.Verb, refused.Resource, refused.Object, join(refused.Missing))
		}
	})
	if err != nil {
		return err
	}
	for _, source := range o.sources {
		o.say("%s", source)
	}
	o.say("%d writes: %d would be refused", simulation.Writes, simulation.Refused)
	if simulation.Unjudged > 0 {
		o.say("%d writes cannot be judged: fieldperm did not observe them, or annotations left out verbs", simulation.Unjudged)
	}
	if simulation.Granting > 0 {
		o.say("%d writes of Roles and bindings cannot be judged: kube-apiserver asks whether the subject holds what they grant, and it loses rights", simulation.Granting)
	}
	if !o.allowLoss {
		for _, loss := range proposal.Losses {
			gaps = append(gaps, fmt.Sprintf("a right besides update and patch is lost: %s; --allow-loss accepts it", loss))
		}
	}
	if simulation.Writes+simulation.Unjudged+simulation.Granting == 0 {
		gaps = append(gaps, fmt.Sprintf("the log has no write of %q: give a log of a time in which it wrote", proposal.Subject))
	}
	for _, gap := range gaps {
		o.say("cannot be judged: %s", gap)
	}
	if simulation.Refused > 0 {
		return ErrRefusals
	}
	if simulation.Unjudged+simulation.Granting > 0 || len(gaps) > 0 {
		return ErrIncomplete
	}
	return nil
}
