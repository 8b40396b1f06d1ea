//go:build integration

package fields

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/test/openapi"
)

// hints are values for fields that accept no other values, by name. The first one that differs from the current value is tried first.
var hints = map[string][]any{
	"apiGroup": {"rbac.authorization.k8s.io"}, "apiVersion": {"v1", "apps/v1"}, "kind": {"ConfigMap", "User"},
	"path": {"/fields", "fields"}, "mountPath": {"/fields"}, "devicePath": {"/dev/fields"}, "subPath": {"fields"}, "port": {8080, 8081}, "targetPort": {8080},
	"containerPort": {8080, 8081}, "hostPort": {8080}, "number": {80, 81}, "nodePort": {30080}, "protocol": {"TCP", "UDP"},
	"image": {"registry.invalid/fields:2"}, "ip": {"192.0.2.7", "192.0.2.8"}, "podIP": {"192.0.2.7"}, "hostIP": {"192.0.2.7"}, "ips": {"192.0.2.7"},
	"clusterIP": {"10.0.0.77", "None"}, "clusterIPs": {"10.0.0.77"}, "loadBalancerIP": {"192.0.2.7"}, "externalIPs": {"192.0.2.7"}, "address": {"192.0.2.7"}, "addresses": {"192.0.2.7", "192.0.2.8"},
	"loadBalancerSourceRanges": {"192.0.2.0/24"}, "cidr": {"192.0.2.0/24"}, "cidrs": {"192.0.2.0/24"}, "podCIDR": {"192.0.2.0/24"}, "podCIDRs": {"192.0.2.0/24"}, "except": {"192.0.2.128/25"},
	"host": {"fields.invalid"}, "hosts": {"fields.invalid"}, "hostname": {"fields"}, "ingressClassName": {"fields"}, "dnsPolicy": {"Default", "ClusterFirst"},
	"operator": {"Exists", "In"}, "effect": {"NoExecute", "NoSchedule"}, "schedule": {"0 0 2 2 *"}, "timeZone": {"Etc/UTC"}, "key": {"example.com/fields", "fields"},
	"finalizers": {"example.com/fields"}, "command": {"fields"}, "restartPolicy": {"Never", "Always", "OnFailure"}, "expression": {"true"}, "resourceVersion": {"1"},
	"verbs": {"get"}, "apiGroups": {""}, "resources": {"configmaps"}, "nonResourceURLs": {"/fields"}, "uid": {"00000000-0000-4000-8000-00000000000f"},
	"storage": {"2Gi"}, "accessModes": {"ReadWriteMany", "ReadOnlyMany"}, "volumeMode": {"Block"}, "fstype": {"ext4"}, "url": {"https://fields.invalid/x"}, "server": {"fields.invalid"},
	"whenUnsatisfiable": {"ScheduleAnyway"}, "topologyKey": {"kubernetes.io/hostname"}, "resource": {"limits.cpu"}, "divisor": {"1"}, "fieldPath": {"metadata.name"},
	"type": {"fields", "Fields"}, "reason": {"Fields", "Other"}, "status": {"True", "False"}, "phase": {"Running", "Active", "Bound"}, "name": {"fields", "example.com/fields"},
	"externalName": {"fields.invalid"}, "signerName": {"example.com/fields"}, "usages": {"client auth"}, "value": {"7", 7}, "drop": {"ALL"}, "add": {"NET_ADMIN"}, "driver": {"fields.example.com"},
	"driverName": {"fields.example.com"}, "provisioner": {"example.com/fields"}, "nodeName": {"fields"}, "maxUnavailable": {1}, "maxSurge": {1}, "minAvailable": {1}, "parallelism": {2}, "reinvocationPolicy": {"IfNeeded"},
	"localhostProfile": {"profiles/fields"}, "user": {"fields"}, "iqn": {"iqn.2001-04.com.example:fields"}, "initiatorName": {"iqn.2001-04.com.example:fields"}, "targetPortal": {"192.0.2.7"}, "lun": {1},
	"monitors": {"192.0.2.7"}, "monitor": {"192.0.2.7"}, "registry": {"fields.invalid:1"}, "diskURI": {"https://fields.invalid/d"}, "repository": {"https://fields.invalid/r"}, "storagePolicyName": {"fields"},
	"whenDeleted": {"Delete"}, "whenScaled": {"Delete"}, "podManagementPolicy": {"Parallel"}, "concurrencyPolicy": {"Forbid"}, "completionMode": {"Indexed"}, "strategy": {"OldestEmulationVersion"},
	"completedIndexes": {"1"}, "failedIndexes": {"1"}, "succeededIndexes": {"0"}, "maxFailedIndexes": {"1"}, "binaryVersion": {"0.0.2"}, "emulationVersion": {"0.0.1"}, "procMount": {"Default"}, "readOnly": {true},
	"gateway": {"192.0.2.7"}, "system": {"fields"}, "sysctls": {"kernel.shm_rmid_forced"}, "matchLabelKeys": {"fields"}, "hugepages": {"1"},
}

// fallback are values for strings with an unknown name.
var fallback = []any{"fields", "example.com/fields", "1", "Fields", "fields.example.com", "192.0.2.7"}

// values returns plausible values of a schema that differ from the current value, the most likely first.
func (s *schemas) values(m *openapi.Type, name string, now any) []any {
	m = s.Resolve(m)
	var out []any
	add := func(values ...any) {
		for _, v := range values {
			if !reflect.DeepEqual(v, now) && !slices.ContainsFunc(out, func(o any) bool { return reflect.DeepEqual(o, v) }) {
				out = append(out, v)
			}
		}
	}
	number, isNumber := asInt(now)
	switch short := m.Name[strings.LastIndex(m.Name, ".")+1:]; {
	case short == "Quantity":
		add("2", "2Gi", "100m")
	case short == "IntOrString":
		add(hintsOf(name)...)
		add(int64(1), "25%", "fields")
	case short == "Time" || m.Format == "date-time":
		if short == "MicroTime" || strings.Contains(fmt.Sprint(now), ".") {
			add("2026-01-02T03:04:05.000001Z")
		}
		add("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000001Z")
	case short == "Duration":
		add("10s")
	case short == "FieldsV1" || short == "RawExtension" || short == "JSON" || short == "JSONSchemaPropsOrBool" || short == "JSONSchemaPropsOrArray":
		add(map[string]any{"type": "object"}, map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}, "fields")
	case len(m.Enum) > 0:
		add(m.Enum...)
	case m.Type == "boolean":
		b, _ := now.(bool)
		add(!b)
	case m.Type == "integer" || m.Type == "number":
		add(hintsOf(name)...)
		if isNumber {
			add(number+1, number-1)
		}
		add(int64(1), int64(2), int64(100), int64(0))
	case m.Format == "byte":
		add("ZmllbGRz")
	case m.Type == "string":
		add(hintsOf(name)...)
		if text, ok := now.(string); ok && text != "" {
			add(text + "x")
		}
		add(fallback...)
	case m.Items != nil:
		// Keep the existing items of a list, because the API server may forbid to remove them.
		for _, item := range s.values(m.Items, name, nil) {
			if have, ok := now.([]any); ok && len(have) > 0 {
				add(append(have[:len(have):len(have)], item))
			}
			add([]any{item})
		}
		add([]any{})
	case len(m.Properties) > 0:
		add(s.make(m, name, 0))
		if now == nil {
			add(map[string]any{})
		}
	case m.Values != nil:
		for _, v := range s.values(m.Values, name, nil) {
			add(map[string]any{mapKey(name): v})
		}
	case m.Type == "object":
		add(map[string]any{}, map[string]any{"fields": "x"})
	default:
		add("fields", int64(1), map[string]any{})
	}
	return out
}

func hintsOf(name string) []any {
	var out []any
	for _, v := range hints[name] {
		if n, ok := v.(int); ok {
			v = int64(n)
		}
		out = append(out, v)
	}
	return out
}

// mapKey is a key for a new entry of a map.
func mapKey(name string) string {
	switch name {
	case "limits", "requests", "capacity", "allocatable", "hard", "used", "allocatedResources", "overhead", "podFixed", "default", "defaultRequest", "min", "max", "maxLimitRequestRatio":
		return "cpu"
	case "data", "stringData", "binaryData", "immutable":
		return "fields"
	}
	return "example.com/fields"
}

// make returns the smallest value of a schema: for an object its required fields.
func (s *schemas) make(m *openapi.Type, name string, depth int) any {
	m = s.Resolve(m)
	if len(m.Properties) == 0 || depth > 6 {
		if m.Items != nil {
			return []any{s.make(m.Items, name, depth+1)}
		}
		if values := s.values(m, name, nil); len(values) > 0 {
			return values[0]
		}
		return nil
	}
	if short := m.Name[strings.LastIndex(m.Name, ".")+1:]; short == "JSONSchemaProps" {
		return map[string]any{"type": "object"}
	}
	out := map[string]any{}
	for _, required := range m.Required {
		if p := m.Properties[required]; p != nil {
			out[required] = s.make(p, required, depth+1)
		}
	}
	return out
}

func asInt(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case int:
		return int64(n), true
	case float64:
		return int64(n), true
	}
	return 0, false
}
