package ladder

// layers are all packages of the module, from the lowest to the highest. A package may import only packages of lower layers, so that packages
// of one layer do not import each other. Tests may import any package.
var layers = []layer{
	// Verbs, types of the API, observations, documents and JSON: data and its grammar.
	{"grammar", []string{
		"api/v1alpha1", "internal/finding", "internal/manifest", "internal/printable", "internal/rawjson", "internal/shorten", "internal/spelling", "schema/endpoint", "verbs",
	}},
	// Paths in objects and schemas, expressions, reviews with conditions, and markers in comments of Go code.
	{"paths", []string{
		"generators/markers/grammar", "internal/cel", "internal/conditions/wire", "schema/fieldpath",
	}},
	// The uses of expressions in schemas and sets.
	{"dialects", []string{
		"schema/internal/dialect",
	}},
	// Data about types and changes, and conditions on what one is given.
	{"schema", []string{
		"fieldperm/change", "internal/conditions/expression", "schema", "schema/catalog", "schema/catalog/contrib",
	}},
	// The comparison of two objects, which finds changed values, and the sets that a schema has.
	{"diff", []string{
		"fieldperm/internal/diff", "schema/sets",
	}},
	// What changes require.
	{"charge", []string{
		"fieldperm/internal/charge",
	}},
	// The comparison of field owners, which charges changed owners, and the compiler of schemas.
	{"owners", []string{
		"fieldperm/internal/owners", "schema/compile",
	}},
	// The decision on two objects, and what documents effect.
	{"core", []string{
		"fieldperm", "internal/schemacheck",
	}},
	// The documents that a schema is compiled from.
	{"documents", []string{
		"internal/lint/convention", "schema/load",
	}},
	// A decision on a request, callable without HTTP.
	{"admission", []string{
		"admission",
	}},
	// The objects by which an API server calls fieldperm.
	{"webhooks", []string{
		"generators/webhooks",
	}},
	// Generators of files, and libraries of the programs without any decision code.
	{"libraries", []string{
		"config", "docs/reference", "generators", "internal/certificates", "internal/conditions",
		"internal/configfile", "internal/fieldtree", "internal/finding/findingtest", "internal/metrics",
		"internal/refresh", "internal/reload", "internal/tracing", "internal/version",
	}},
	// What endpoints and controllers consist of, and generators from Go types.
	{"components", []string{
		"generators/crdrefdocs", "generators/markers", "internal/allowlist", "internal/anyvalue", "internal/applied", "internal/audit", "internal/authn", "internal/conditions/remote", "internal/livefield", "internal/metrics/metricstest", "internal/needs", "internal/page", "internal/rbac", "internal/review", "internal/rolemarkers", "internal/uncovered",
	}},
	// The authorizer chain, the proof of enforcement, the sources of schemas, and proposals of roles.
	{"services", []string{
		"generators/openapi", "internal/access", "internal/authz", "internal/fieldrole", "internal/interlock", "internal/lint", "internal/sources", "internal/tighten",
	}},
	// The code of the command lines, and controllers that watch services.
	{"commands", []string{
		"internal/diagnosis", "internal/generate", "internal/observation", "internal/policies", "internal/preflight", "internal/refusal", "internal/status",
	}},
	// Everything that the webhook server runs, and the commands of the kubectl plugin. Neither imports the other.
	{"server and plugin", []string{
		"internal/plugin", "internal/server",
	}},
	// Main packages that ship, and the program that generates files.
	{"programs", []string{
		"cmd/fieldperm-gen", "cmd/fieldperm-webhook", "cmd/kubectl-fieldperm", "config/generate", "docs/reference/generate",
	}},
	// The packages that ship are in lower layers and so import no package of test. The packages here are shared by tests and do not depend
	// on fieldperm.
	{"test tools", []string{
		"test/aggregated/brewery/v1", "test/aggregated/brewery/v1beta1", "test/aggregated/plain/openapi", "test/aggregated/plain/v1",
		"test/bench/ratios", "test/fakeapi", "test/issuer", "test/minors", "test/mutation/edit", "test/noop", "test/openapi", "test/previous", "test/process", "test/sampleobject", "test/sender", "test/store", "test/watchdog",
	}},
	// API servers, the API of an aggregated one, and compiled schemas.
	{"test cluster", []string{
		"test/aggregated/brewery", "test/aggregated/brewery/openapi", "test/cluster", "test/corpus", "test/exact", "test/schematest",
	}},
	// API servers with fieldperm, and an aggregated API server.
	{"test environment", []string{
		"test/aggregated/server", "test/stack",
	}},
	// Programs that draw requests and judge stored objects, and the trials of controllers.
	{"test programs", []string{
		"test/controllers/trial", "test/oracle", "test/previous/replay",
	}},
	// Packages that no package imports.
	{"tests", []string{
		"test/aggregated", "test/aggregated/plain", "test/asks", "test/bench", "test/chain", "test/contrib", "test/controllers", "test/controllers/thirdparty", "test/crdrefdocs", "test/demo", "test/deploy", "test/docs", "test/e2e", "test/endpoints", "test/faults", "test/fields", "test/ladder",
		"test/load", "test/model", "test/mutation", "test/noop/cmd", "test/oracle/cmd", "test/oracle/faults", "test/patch", "test/recipes", "test/scale", "test/soak", "test/suite", "test/versions",
	}},
}

// layer is a group of packages that do not import each other.
type layer struct {
	name     string
	packages []string
}

// mayNot lists prefixes of packages on which a package must not depend, directly or indirectly.
var mayNot = map[string][]string{
	"verbs":             {"net/http", "k8s.io/", "sigs.k8s.io/"},
	"internal/manifest": {"net/http", "k8s.io/"},
	"internal/rawjson":  {"net/http", "k8s.io/", "sigs.k8s.io/"},
	"internal/spelling": {"net/http", "k8s.io/", "sigs.k8s.io/"},
	"schema/fieldpath":  {"net/http", "k8s.io/", "sigs.k8s.io/"},
	// Linters with other dependencies use the grammar.
	"generators/markers/grammar": {"net/http", "k8s.io/", "sigs.k8s.io/"},
	"fieldperm/change":           {"net/http", "k8s.io/", "sigs.k8s.io/", module + "schema/catalog"},
	// Schemas are compiled from documents. The core uses compiled schemas and does not depend on documents.
	"fieldperm": {"k8s.io/client-go/", "k8s.io/api/rbac/", module + "schema/catalog", module + "schema/compile", module + "schema/sets", module + "internal/manifest"},
}

// mayNotImport lists prefixes of packages that a package must not import itself. Its dependencies may.
var mayNotImport = map[string][]string{
	// The server imports the review API, and must not get the commands of the plugin with it.
	"internal/review": {"github.com/spf13/"},
	// The language of conditions is a pure function of its input.
	"internal/cel":                   {"k8s.io/client-go/", "k8s.io/klog/", "net/http"},
	"internal/conditions/expression": {"k8s.io/client-go/", "k8s.io/klog/", "net/http", module + "internal/rawjson"},
	// A schema does not read objects. It depends on the reader of JSON only because paths render the values of keys.
	"schema":         {"k8s.io/client-go/", "k8s.io/klog/", module + "internal/rawjson"},
	"schema/sets":    {"k8s.io/client-go/", "k8s.io/klog/", module + "internal/rawjson"},
	"schema/compile": {"k8s.io/client-go/", "k8s.io/klog/", module + "internal/rawjson"},
	"schema/load":    {module + "internal/rawjson"},
	"fieldperm":      {"k8s.io/client-go/", "k8s.io/klog/", "net/http"},
	// What changed does not depend on who may change it.
	"fieldperm/internal/diff":   {"k8s.io/client-go/", "k8s.io/klog/", "net/http", module + "verbs"},
	"fieldperm/internal/charge": {"k8s.io/client-go/", "k8s.io/klog/", "net/http"},
	"fieldperm/internal/owners": {"k8s.io/client-go/", "k8s.io/klog/", "net/http"},
}
