package interlock

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
)

func TestA5_OtherRefusalsOfAProbeAreNoProofAndNameTheCure(t *testing.T) {
	prober := Prober{Tokens: NewProbeTokens(NewKeyring(clock.RealClock{}), clock.RealClock{})}
	configmaps := schema.GroupResource{Resource: "configmaps"}
	for name, c := range map[string]struct {
		err  error
		cure string
	}{
		"may not impersonate": {
			apierrors.NewForbidden(configmaps, "x", errors.New(`User "fieldperm" cannot impersonate-on:user-info:patch resource "configmaps"`)), "apply rbac.yaml",
		},
		"no authorizer": {
			apierrors.NewForbidden(configmaps, "x", errors.New(`User "fieldperm:probe" cannot patch resource "configmaps"`)), "--authorization-config",
		},
		"authorizer cannot call": {
			apierrors.NewGenericServerResponse(http.StatusInternalServerError, "patch", configmaps, "x", `Post "https://10.96.0.20/authorize?timeout=3s": tls: unknown authority`, 0, true), "authorizer.kubeconfig",
		},
		"webhook cannot be called": {
			apierrors.NewInternalError(errors.New(`failed calling webhook "granular.fieldperm.dev": failed to call webhook: EOF`)), "admission.kubeconfig",
		},
		"webhook for probes cannot be called": {
			apierrors.NewInternalError(errors.New(`failed calling webhook "probe.fieldperm.dev": failed to call webhook: EOF`)), "admission.kubeconfig",
		},
		"another webhook": {
			apierrors.NewForbidden(configmaps, "x", errors.New("no writes on Sundays")), "no other webhook or policy",
		},
		"no answer": {errors.New("dial tcp 127.0.0.1:6443: connect: connection refused"), "can be reached"},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := prober.judge(granularProbe(), []string{"nonce"}, c.err)
			if result != Unproven || err == nil || !strings.Contains(err.Error(), c.cure) {
				t.Errorf("%s: %v; want %s and the cure %q", result, err, Unproven, c.cure)
			}
		})
	}
}
