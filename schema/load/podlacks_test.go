package load

import (
	"strings"
	"testing"
)

// TestC8_AConditionNoticesWhatADerivedValueLacks, and not what is there anyway. A value that the API server makes has nothing but what it writes.
func TestC8_AConditionNoticesWhatADerivedValueLacks(t *testing.T) {
	const c0, sa = `"containers":[{"name":"a","image":"b"}]`, `"serviceAccountName":"s",`
	const vol = `{"name":"kube-api-access-x","projected":{"defaultMode":420,"sources":[{"serviceAccountToken":{"path":"token","expirationSeconds":3607}}]}}`
	const cTok = `"containers":[{"name":"a","image":"b","volumeMounts":[{"name":"kube-api-access-x","mountPath":"/var/run/secrets/kubernetes.io/serviceaccount","readOnly":true}]}]`
	const withTok, noTok = `{"spec":{` + sa + `"volumes":[` + vol + `],` + cTok + `}}`, `{"spec":{` + sa + c0 + `}}`
	lim := `{"spec":{"containers":[{"name":"a","image":"b","resources":{"limits":{"cpu":"1"},"requests":{"cpu":"1"}}}]}}`
	zoned := func(zone, tier string) string {
		return `{"metadata":{"labels":{"tier":"` + tier + `","topology.kubernetes.io/zone":"` + zone + `"}},"spec":{"nodeName":"n",` + c0 + `}}`
	}
	armor := `"metadata":{"annotations":{"container.apparmor.security.beta.kubernetes.io/a":"runtime/default"}},`
	armored := `{` + armor + `"spec":{"containers":[{"name":"a","image":"b","securityContext":{"appArmorProfile":{"type":"RuntimeDefault"}}}]}}`
	for name, c := range map[string]struct {
		path, when, template, pod, oldTemplate, oldPod string
		want                                           bool
	}{
		"volumes[*]":          {`.spec.volumes[*]`, `!has(self.configMap) && !has(self.emptyDir)`, noTok, withTok, "", "", false},
		"volumeMounts[*]":     {`.spec.containers[*].volumeMounts[*]`, `!has(self.subPath)`, noTok, withTok, "", "", false},
		"imagePullSecrets[*]": {`.spec.imagePullSecrets[*]`, `self.?kind.orValue('') == ''`, noTok, `{"spec":{` + sa + `"imagePullSecrets":[{"name":"p"}],` + c0 + `}}`, "", "", false},
		"securityContext":     {`.spec.containers[*].securityContext`, `!has(self.allowPrivilegeEscalation) || self.allowPrivilegeEscalation`, `{` + armor + `"spec":{` + c0 + `}}`, armored, "", "", false},
		"metadata":            {`.metadata`, `self.?labels[?'topology.kubernetes.io/zone'].orValue('') == 'secure'`, zoned("open", "2"), zoned("secure", "2"), zoned("open", "1"), zoned("secure", "1"), false},
		// These are allowed on Pods.
		"hostPath, image of a Deployment with serviceAccountName": {`.spec`, `has(self.volumes) && self.volumes.exists(v, has(v.hostPath))`, strings.ReplaceAll(noTok, `"b"`, `"c"`), strings.ReplaceAll(noTok, `"b"`, `"c"`), noTok, noTok, true},
		"hostPath of volumes[*]":                                  {`.spec.volumes[*]`, `self != null && has(self.hostPath)`, noTok, withTok, "", "", true},
		"limits are required":                                     {`.spec.containers[*]`, `!has(self.resources) || !has(self.resources.limits)`, lim, lim, "", "", true},
		"the same, of spec":                                       {`.spec`, `self.containers.exists(c, !has(c.resources) || !has(c.resources.limits))`, lim, lim, "", "", true},
		"the same, of resources":                                  {`.spec.containers[*].resources`, `self == null || !has(self.limits)`, lim, lim, "", "", true},
		"limits are limited":                                      {`.spec.containers[*].resources`, `self != null && has(self.limits) && has(self.limits.cpu) && self.limits.cpu == '8'`, lim, lim, "", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := compileWorkloads(t, permissionSchema("a", "", "Pod", `{path: '`+c.path+`', verb: example.com/x, excludedWhen: "`+c.when+`"}`))
			if got := allows(t, s, gvk("", "v1", "Pod"), c.oldPod, c.pod, "granular:none"); got != c.want {
				t.Errorf("the Pod: allowed %t", got)
			}
			if got := allows(t, s, gvk("apps", "v1", "Deployment"), inDeployment(c.oldTemplate), inDeployment(c.template), "granular:none"); got != c.want {
				t.Errorf("the Deployment: allowed %t", got)
			}
		})
	}
}
