package oracle

import (
	"bytes"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/test/store"
)

// prefix is a key prefix that the server, or the administrator of the oracle, writes without a request of a drawn user.
type prefix struct {
	key *regexp.Regexp
	// proof must occur in the stored value. If it is empty, the key alone is proof.
	proof  []byte
	reason string
}

var prefixes = []prefix{
	{key: regexp.MustCompile(`^/registry/leases/kube-system/apiserver-`), reason: "the API server renews its own lease"},
	{key: regexp.MustCompile(`^/registry/leases/kube-system/leader-election-controller$`), proof: []byte(`"holderIdentity"`), reason: "the API server's controller for leader election renews its lease"},
	{key: regexp.MustCompile(`^/registry/peerserverleases/apiserver-`), reason: "the API server says that it lives, to its peers"},
	{key: regexp.MustCompile(`^/registry/masterleases/`), reason: "the API server says that it lives"},
	{key: regexp.MustCompile(`^/registry/ranges/service(ips|nodeports)$`), reason: "the allocator's bitmap, one key for all Services: it holds no field that a client wrote"},
	{key: regexp.MustCompile(`^/registry/apiregistration\.k8s\.io/apiservices/`), proof: []byte("kube-aggregator.kubernetes.io/automanaged"), reason: "the API server registers what a definition serves"},
	{key: regexp.MustCompile(`^/registry/(flowschemas|prioritylevelconfigurations)/`), proof: []byte("apf.kubernetes.io/autoupdate-spec"), reason: "the API server keeps its own configuration of priority and fairness"},
	{key: regexp.MustCompile(`^/registry/(clusterroles|clusterrolebindings)/oracle:`), reason: "the oracle's grants"},
	{key: regexp.MustCompile(`^/registry/(clusterroles|clusterrolebindings|roles/default|rolebindings/default)/(probe-|barrier-probe:)`), reason: "the probes that wait for grants"},
	{key: regexp.MustCompile(`^/registry/validatingwebhookconfigurations/fieldperm-(uncovered|observed)$`), reason: "fieldperm keeps its own configuration"},
	{key: regexp.MustCompile(`^/registry/fieldperm\.dev/`), reason: "the oracle's schemas and sets, and what fieldperm says of them"},
	{key: regexp.MustCompile(`^/registry/apiextensions\.k8s\.io/customresourcedefinitions/things\.d\d+\.e\d+\.oracle\.test$`), reason: "the oracle's definitions, and their status"},
	{key: regexp.MustCompile(`^/registry/events/default/kubernetes\.`), proof: []byte(`"kind":"ServiceCIDR"`), reason: "the API server records an Event about its own ServiceCIDR"},
	{key: regexp.MustCompile(`^/registry/events/`), proof: repair, reason: "the repair of Service addresses records an Event"},
	{key: regexp.MustCompile(`^/registry/(services/specs|ipaddresses|clusterroles|clusterrolebindings|mutatingadmissionpolicies|mutatingadmissionpolicybindings)/(oracle-inject|default/probe)`), reason: "the oracle's own objects"},
	{key: regexp.MustCompile(`^/registry/events/`), proof: []byte(`"component":"fieldperm`), reason: "fieldperm's Events"},
	{key: regexp.MustCompile(`^/registry/events/default/fieldperm\.`), proof: []byte(`"reportingComponent":"fieldperm`), reason: "fieldperm's Events"},
	{key: regexp.MustCompile(`^/registry/storageversions/`), proof: []byte(`"apiServerID":"apiserver-`), reason: "the API server says every ten minutes in which versions it stores"},
}

// explain gives the reason for an event whose key belongs to no shard. The second result is false if there is no known reason.
func explain(e *Event) (string, bool) {
	raw := e.New
	if raw == nil {
		raw = e.Old
	}
	for i := range prefixes {
		p := &prefixes[i]
		if p.key.MatchString(e.Key) && (len(p.proof) == 0 || bytes.Contains(raw, p.proof)) {
			return p.reason, true
		}
	}
	return "", false
}

// serverManagers are the field managers of the API server's own writes, and of fieldperm's. No request of the oracle
// names them.
var serverManagers = []any{"kube-apiserver", "fieldperm"}

// repair is the API server's controller that looks after the addresses of Services.
var repair = []byte(`ipallocator-repair-controller"`)

// byServer tells which of the API server's own controllers has written an object of a drawn user. It is true only if nothing but the status
// differs and no other client has ever written the status, which managedFields would show. The answer to the request is no proof: a write
// that changes nothing is answered with the revision of the last write that did.
func byServer(e *Event, r *Request) (string, bool) {
	if strings.HasPrefix(e.Key, store.Prefix+"ipaddresses/") && r.Endpoint.Resource != "ipaddresses" {
		isManaged := bytes.Contains(slices.Concat(e.New, e.Old), []byte(`"ipaddress.kubernetes.io/managed-by":"ipallocator.k8s.io"`))
		switch {
		case e.Deleted() && isManaged:
			// The repair may delete it at any time: one minute after the IPAddress was created, if its Service does not name it.
			return "the allocator or its repair takes the IPAddress of a Service", true
		case r.Endpoint.Resource == "services":
			return "the allocator makes the IPAddress of a Service", isManaged || bytes.Contains(slices.Concat(e.New, e.Old), []byte(`"ipallocator.k8s.io/`))
		}
	}
	if strings.HasPrefix(e.Key, store.Prefix+"events/") && r.Endpoint.Resource != "events" && bytes.Contains(e.New, repair) {
		return "the repair of Service addresses records an Event", true
	}
	if e.Created() || e.Deleted() {
		return "", false
	}
	old, new := e.Old, e.New
	if strings.HasPrefix(e.Key, store.Prefix+v1alpha1.GroupVersion.Group+"/") {
		// Any write of a custom resource drops what no reader gets.
		var err1, err2 error
		old, _, err1 = readable(nil, old, false)
		if new, _, err2 = readable(nil, new, false); err1 != nil || err2 != nil {
			return "", false
		}
	}
	before, err1 := parseObject(old)
	after, err2 := parseObject(new)
	if err1 != nil || err2 != nil {
		return "", false
	}
	alone, later := onlyServerWritesStatus(after), onlyServerWrote(before, after)
	if metadata(before)["generation"] == nil {
		delete(metadata(after), "generation") // Any write gives a custom resource its first generation.
	}
	for _, object := range []map[string]any{before, after} {
		delete(object, "status")
		delete(metadata(object), "managedFields")
	}
	// If the object is not the one that the request names, only the server's controllers write its status.
	another := metadata(after)["name"] != r.Name && slices.Contains([]any{"CustomResourceDefinition", "APIService", "PermissionSchema", "UncoveredPermissionSet"}, after["kind"])
	if !reflect.DeepEqual(before, after) || !alone && !another && !later {
		return "", false
	}
	kind, _ := after["kind"].(string)
	return "the API server or fieldperm writes the status of a " + kind, true
}

// onlyServerWrote reports whether one entry of managedFields that differs belongs to a server's write of the status, and all other entries
// at most lost fields. A client that changes a value comes to own it, so that its own entry gains a field.
func onlyServerWrote(before, after map[string]any) bool {
	was, _ := metadata(before)["managedFields"].([]any)
	is, _ := metadata(after)["managedFields"].([]any)
	wrote := false
	for _, item := range is {
		if slices.ContainsFunc(was, func(old any) bool { return reflect.DeepEqual(item, old) }) {
			continue
		}
		entry, _ := item.(map[string]any)
		switch {
		case entry["subresource"] == "status" && slices.Contains(serverManagers, entry["manager"]):
			wrote = true
		case !slices.ContainsFunc(was, func(old any) bool { return isPartOf(item, old) }):
			return false
		}
	}
	return wrote
}

// isPartOf reports whether every member of an object is in another, with the same value or with a part of it.
func isPartOf(part, whole any) bool {
	object, ok := part.(map[string]any)
	if !ok {
		return reflect.DeepEqual(part, whole)
	}
	other, ok := whole.(map[string]any)
	for name, value := range object {
		if in, there := other[name]; !there || !isPartOf(value, in) {
			return false
		}
	}
	return ok
}

func onlyServerWritesStatus(object map[string]any) bool {
	list, _ := metadata(object)["managedFields"].([]any)
	server := false
	for _, item := range list {
		entry, ok := item.(map[string]any)
		if !ok || entry["subresource"] != "status" {
			continue
		}
		if !slices.Contains(serverManagers, entry["manager"]) {
			return false
		}
		server = true
	}
	return server
}
