package generators

import (
	"github.com/fieldperm/fieldperm/generators/webhooks"
)

const staticComment = `# The validating admission webhook for the directory staticManifestsDir of admission-configuration.yaml.
# From there it holds whatever happens to the objects in the cluster.
#   granular   asks fieldperm about every write of users who lack the generic permission.
# The webhooks "uncovered" and "schemas" are not here: fieldperm keeps them in the cluster, as the
# ValidatingWebhookConfiguration fieldperm-uncovered, so that a new barrier needs no new file.
`

func staticWebhooks(o Options) (string, string, []any, error) {
	return fileStatic, staticComment, []any{webhooks.StaticConfiguration(o.Options)}, nil
}

const restComment = `# Validating admission webhooks as objects of the cluster.
# fieldperm             granular asks fieldperm about every write of users who lack the generic permission. schemas
#                       refuses permission schemas that do not compile; it is passed over while fieldperm is down.
#                       The finalizer keeps both enforced after "kubectl delete": fieldperm allows nothing any more,
#                       waits until no API server can still hold an Allow of it, and then removes the finalizer.
#                       fieldperm adds the webhook probe, and renews the CA bundles: let a GitOps tool ignore what the
#                       field manager fieldperm owns here.
`

const (
	keptComment = `# fieldperm-uncovered   is not here: fieldperm makes it, for the resources where schemas have barriers.
`
	writtenComment = `# fieldperm-uncovered   asks fieldperm about everyone's writes, only where schemas have barriers. Generate it anew
#                       when a schema gains or loses a barrier.
`
)

func restWebhooks(o Options) (string, string, []any, error) {
	objects := []any{webhooks.GranularConfiguration(o.Options)}
	if len(o.Uncovered) == 0 {
		return fileWebhooks, restComment + keptComment, objects, nil
	}
	return fileWebhooks, restComment + writtenComment, append(objects, webhooks.UncoveredConfiguration(o.ClientConfig(webhooks.UncoveredPath), webhooks.Writes.On(o.Uncovered))), nil
}

// guardComment is for readers of the file. The messages of the policy name the way out too.
const (
	guardComment = `# Protects fieldperm's webhook configurations from everyone, members of system:masters too: an update that narrows
# or loosens them is refused. Labels, annotations and a wider rule are not. fieldperm itself keeps
# the rules of fieldperm-uncovered and the CA bundles. Members of system:masters may delete fieldperm-uncovered, and
# with it all barriers, when fieldperm is gone; fieldperm makes it again when it runs.
# There is no other way around the policy than to delete the ValidatingAdmissionPolicyBinding fieldperm-guard first,
# which an audit log shows. Webhooks and policies are not asked about that.
`
	guardRESTComment = `# The configuration fieldperm must keep its finalizer; cert-manager may set its CA bundle.
# "kubectl delete validatingwebhookconfiguration fieldperm" works, and is how to uninstall.
`
)

func guard(o Options) (string, string, []any, error) {
	comment := guardComment
	if o.REST {
		comment += guardRESTComment
	}
	return fileGuard, comment, []any{webhooks.GuardPolicy(o.Options), webhooks.GuardBinding()}, nil
}
