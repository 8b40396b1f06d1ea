package reviews

import (
	"fmt"
	"strings"
	"testing"
)

// Deployments returns the reviews of Deployments. The 16 KiB of ten changed fields are by Deployer, all others by Scaler. A denied review
// has one change more than its user may make: the image, or a label.
func Deployments(tb testing.TB) []Case {
	tb.Helper()
	var out []Case
	for _, size := range sizes {
		out = append(out,
			Case{fmt.Sprintf("%dKiB/allowed", size), deployed(tb, size, Scaler, edit{replicas: 1}), true},
			Case{fmt.Sprintf("%dKiB/denied", size), deployed(tb, size, Scaler, edit{replicas: 1, image: 1}), false})
	}
	ten := edit{replicas: 1, image: 1, rest: 1}
	label := ten
	label.label = 1
	return append(out, Case{"ten-fields/allowed", deployed(tb, 16, Deployer, ten), true}, Case{"ten-fields/denied", deployed(tb, 16, Deployer, label), false})
}

// edit has a 1 for what is changed in the new object, and a 0 for what is not. It is added to numbers, so that the size stays.
type edit struct {
	replicas, image, label int
	// rest are eight more fields of .spec.
	rest int
}

// deployed is a review in which the manager that owns the specification changes it, as in kubectl edit.
func deployed(tb testing.TB, kib int, user string, e edit) []byte {
	tb.Helper()
	return fill(tb, kib<<10, func(parts, text int) []byte {
		s := shape{settings: parts, text: text, small: kib <= 2}
		return review(user, s.deployment(e, 1), s.deployment(edit{}, 0))
	})
}

// shape is the size of a Deployment.
type shape struct {
	// settings is the number of environment variables, at most perContainer in each container.
	settings int
	// text is the number of bytes of an annotation that fills up the size.
	text int
	// small leaves out what two objects have no room for in 2 KiB: everything that need not be there.
	small bool
}

const perContainer = 40

// deployment is the Deployment as kube-apiserver encodes it, made by kubectl, with a status by its controller.
func (s shape) deployment(e edit, updates int) []byte {
	containers, owned := s.containers(e)
	annotations, status, strategy, pod, labelsOwned := "", "", "", "", ""
	if s.text > 0 {
		annotations = fmt.Sprintf(`"annotations":{"example.com/notes":%q},`, strings.Repeat("Ask the shop's channel before you change this. ", s.text/47+1)[:s.text])
	}
	managers := fmt.Sprintf(`{"manager":"kubectl","operation":"Update","apiVersion":"apps/v1","time":"2026-01-0%dT08:00:00Z","fieldsType":"FieldsV1","fieldsV1":{`, 1+updates)
	if !s.small {
		labelsOwned = `"f:metadata":{"f:annotations":{".":{},"f:example.com/notes":{}},"f:labels":{".":{},"f:app":{},"f:revision":{}}},`
		pod = fmt.Sprintf(`,"restartPolicy":"Always","terminationGracePeriodSeconds":%d,"dnsPolicy":"ClusterFirst"`, 30+e.rest)
		strategy = fmt.Sprintf(`,"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":%d,"maxSurge":%d}},"revisionHistoryLimit":%d,"progressDeadlineSeconds":%d`,
			1+e.rest, 2+e.rest, 3+e.rest, 600+e.rest)
		status = `,"status":{"observedGeneration":7,"replicas":3,"updatedReplicas":3,"readyReplicas":3,"availableReplicas":3,"conditions":[` +
			`{"type":"Available","status":"True","lastUpdateTime":"2026-01-01T08:00:00Z","lastTransitionTime":"2026-01-01T08:00:00Z","reason":"MinimumReplicasAvailable","message":"Deployment has minimum availability."}]}`
		managers = `{"manager":"kube-controller-manager","operation":"Update","apiVersion":"apps/v1","time":"2026-01-01T08:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:availableReplicas":{},` +
			`"f:conditions":{".":{},"k:{\"type\":\"Available\"}":{".":{},"f:lastTransitionTime":{},"f:lastUpdateTime":{},"f:message":{},"f:reason":{},"f:status":{},"f:type":{}}},` +
			`"f:observedGeneration":{},"f:readyReplicas":{},"f:replicas":{},"f:updatedReplicas":{}}},"subresource":"status"},` + managers
		owned = `"f:progressDeadlineSeconds":{},"f:replicas":{},"f:revisionHistoryLimit":{},"f:selector":{},"f:strategy":{"f:rollingUpdate":{".":{},"f:maxSurge":{},"f:maxUnavailable":{}},"f:type":{}},` +
			`"f:template":{"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:containers":{` + owned + `},"f:dnsPolicy":{},"f:restartPolicy":{},"f:terminationGracePeriodSeconds":{}}}`
	} else {
		owned = `"f:replicas":{},"f:template":{"f:spec":{"f:containers":{` + owned + `}}}`
	}
	metadata := fmt.Sprintf(`{"name":"store","namespace":"shop","uid":"6f1c2a3e-6d1b-4f5e-9a51-0d7f3c9b2e10","resourceVersion":"184467","generation":%d,"creationTimestamp":"2026-01-01T08:00:00Z",`+
		`"labels":{"app":"store","revision":"%d"},%s"managedFields":[%s%s"f:spec":{%s}}}]}`, 7+updates, 1+e.label, annotations, managers, labelsOwned, owned)
	return fmt.Appendf(nil, `{"kind":"Deployment","apiVersion":"apps/v1","metadata":%s,"spec":{"replicas":%d,"selector":{"matchLabels":{"app":"store"}},`+
		`"template":{"metadata":{"labels":{"app":"store"}},"spec":{"containers":[%s]%s}}%s}%s}`, metadata, 3+e.replicas, containers, pod, strategy, status)
}

// containers returns the containers, and the members of managedFields for them. An edit changes the first container only.
func (s shape) containers(e edit) (containers, owned string) {
	var all, fields []string
	for i := 0; i == 0 || i*perContainer < s.settings; i++ {
		change := edit{}
		if i == 0 {
			change = e
		}
		var settings, names []string
		for v := range min(s.settings-i*perContainer, perContainer) {
			number := v
			if v == 0 {
				number += 500 * change.rest
			}
			settings = append(settings, fmt.Sprintf(`{"name":"SHOP_SETTING_%d","value":"https://service.shop.svc.cluster.local:8443/api/v1/%03d"}`, v, number))
			names = append(names, fmt.Sprintf(`"k:{\"name\":\"SHOP_SETTING_%d\"}":{".":{},"f:name":{},"f:value":{}}`, v))
		}
		container := fmt.Sprintf(`{"name":"c%d","image":"registry.example/shop/c%d:v%d"`, i, i, 1+change.image)
		field := fmt.Sprintf(`"k:{\"name\":\"c%d\"}":{".":{},"f:image":{}`, i)
		if len(settings) > 0 {
			container += `,"env":[` + strings.Join(settings, ",") + `]`
			field += `,"f:env":{".":{},` + strings.Join(names, ",") + `}`
		}
		if !s.small {
			container += fmt.Sprintf(`,"resources":{"limits":{"cpu":"%dm","memory":"%dMi"}},"imagePullPolicy":"IfNotPresent"`, 500+change.rest, 256+change.rest)
			field += `,"f:imagePullPolicy":{},"f:name":{},"f:resources":{".":{},"f:limits":{".":{},"f:cpu":{},"f:memory":{}}}`
		}
		all = append(all, container+"}")
		fields = append(fields, field+"}")
	}
	return strings.Join(all, ","), strings.Join(fields, ",")
}
