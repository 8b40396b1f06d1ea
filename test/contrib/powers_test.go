package contrib

import (
	"slices"
	"testing"

	"github.com/fieldperm/fieldperm/schema"
)

// dangerous are fields whose power is known from the documentation of the projects, apart from what the catalogues say.
var dangerous = map[string]map[string]schema.Power{
	"Application.argoproj.io":                                 {".operation": schema.RunsCode, ".spec.source": schema.RunsCode, ".spec.source.targetRevision": schema.RunsCode, ".spec.destination": schema.Escalates, ".spec.project": schema.Escalates, ".spec.syncPolicy.automated.prune": schema.Deletes, ".spec.syncPolicy.managedNamespaceMetadata": schema.DisablesProtection},
	"AppProject.argoproj.io":                                  {".spec.roles": schema.Escalates, ".spec.sourceRepos": schema.RunsCode, ".spec.destinations": schema.Escalates, ".spec.clusterResourceWhitelist": schema.Escalates},
	"ApplicationSet.argoproj.io":                              {".spec.generators": schema.RunsCode, ".spec.template": schema.RunsCode, ".spec.templatePatch": schema.RunsCode},
	"Certificate.cert-manager.io":                             {".spec.isCA": schema.Escalates, ".spec.dnsNames": schema.Escalates, ".spec.issuerRef": schema.Escalates, ".spec.privateKey": schema.DisablesProtection},
	"ClusterIssuer.cert-manager.io":                           {".spec.vault.server": schema.ReadsSecrets, ".spec.vault.auth": schema.ReadsSecrets, ".spec.acme.solvers": schema.RunsCode, ".spec.ca": schema.Escalates, ".spec.acme.skipTLSVerify": schema.DisablesProtection},
	"Kustomization.kustomize.toolkit.fluxcd.io":               {".spec.serviceAccountName": schema.Escalates, ".spec.kubeConfig": schema.Escalates, ".spec.postBuild": schema.ReadsSecrets, ".spec.patches": schema.RunsCode, ".spec.path": schema.RunsCode, ".spec.prune": schema.Deletes, ".spec.decryption": schema.ReadsSecrets},
	"HelmRelease.helm.toolkit.fluxcd.io":                      {".spec.serviceAccountName": schema.Escalates, ".spec.values": schema.RunsCode, ".spec.valuesFrom": schema.ReadsSecrets, ".spec.postRenderers": schema.RunsCode},
	"GitRepository.source.toolkit.fluxcd.io":                  {".spec.url": schema.ReadsSecrets, ".spec.ref": schema.RunsCode, ".spec.verify": schema.DisablesProtection},
	"Gateway.gateway.networking.k8s.io":                       {".spec.listeners[*].tls": schema.ReadsSecrets, ".spec.listeners[*].allowedRoutes": schema.RedirectsTraffic},
	"ReferenceGrant.gateway.networking.k8s.io":                {".spec.from": schema.ReadsSecrets, ".spec.to": schema.ReadsSecrets},
	"HTTPRoute.gateway.networking.k8s.io":                     {".spec.rules": schema.RedirectsTraffic, ".spec.hostnames": schema.RedirectsTraffic},
	"ScaledObject.keda.sh":                                    {".spec.triggers": schema.ReadsSecrets, ".spec.scaleTargetRef": schema.Deletes, `.metadata.annotations["autoscaling.keda.sh/paused-replicas"]`: schema.Deletes},
	"ScaledJob.keda.sh":                                       {".spec.jobTargetRef": schema.RunsCode, ".spec.jobTargetRef.template": schema.RunsCode},
	"TriggerAuthentication.keda.sh":                           {".spec.podIdentity": schema.Escalates, ".spec.secretTargetRef": schema.ReadsSecrets, ".spec.hashiCorpVault": schema.ReadsSecrets},
	"Cluster.cluster.x-k8s.io":                                {".spec.topology.classRef": schema.RunsCode, ".spec.controlPlaneEndpoint": schema.RedirectsTraffic},
	"Machine.cluster.x-k8s.io":                                {".spec.providerID": schema.Escalates, ".spec.bootstrap": schema.RunsCode},
	"KubeadmControlPlane.controlplane.cluster.x-k8s.io":       {".spec.kubeadmConfigSpec": schema.RunsCode},
	"Prometheus.monitoring.coreos.com":                        {".spec.containers": schema.RunsCode, ".spec.serviceAccountName": schema.Escalates, ".spec.additionalScrapeConfigs": schema.ReadsSecrets, ".spec.remoteWrite": schema.RedirectsTraffic, ".spec.image": schema.RunsCode},
	"AlertmanagerConfig.monitoring.coreos.com":                {".spec.receivers": schema.RedirectsTraffic},
	"Composition.apiextensions.crossplane.io":                 {".spec.pipeline": schema.RunsCode, ".spec.pipeline[*].credentials": schema.ReadsSecrets},
	"Provider.pkg.crossplane.io":                              {".spec.package": schema.RunsCode, ".spec.runtimeConfigRef": schema.Escalates},
	"DeploymentRuntimeConfig.pkg.crossplane.io":               {".spec.deploymentTemplate": schema.RunsCode, ".spec.serviceAccountTemplate": schema.Escalates},
	"CompositeResourceDefinition.apiextensions.crossplane.io": {".spec.conversion": schema.ReadsSecrets, ".spec.enforcedCompositionRef": schema.RunsCode},
}

// TestContrib_DangerousFieldsHaveTheirPower: each has a verb of its own with at least the power that makes it dangerous.
func TestContrib_DangerousFieldsHaveTheirPower(t *testing.T) {
	found := map[string]bool{}
	for _, p := range readProjects(t) {
		for _, e := range p.entries(t) {
			power, listed := dangerous[e.kind][e.Path]
			if !listed {
				continue
			}
			found[e.kind+e.Path] = true
			if e.Verb == "" || !slices.Contains(e.powers, power) {
				t.Errorf("%s: %s %s: verb %q lacks the power %s", p.File, e.kind, e.Path, e.Verb, power)
			}
		}
	}
	for kind, fields := range dangerous {
		for path := range fields {
			if !found[kind+path] {
				t.Errorf("%s %s: has no verb of its own", kind, path)
			}
		}
	}
}
