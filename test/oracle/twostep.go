package oracle

import "encoding/json"

// applier applies an unchanged manifest again.
type applier struct {
	endpoint   *Endpoint
	manifest   []byte
	serverSide bool
}

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// withLastApplied is what "kubectl apply" creates.
func withLastApplied(object map[string]any) ([]byte, error) {
	manifest, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	out := clone(object)
	child(metadata(out), "annotations")[lastApplied] = string(manifest) + "\n"
	return json.Marshal(out)
}
