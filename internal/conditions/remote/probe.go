package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/utils/ptr"

	"github.com/fieldperm/fieldperm/internal/conditions/wire"
	"github.com/fieldperm/fieldperm/internal/shorten"
)

// probeCondition is the ID and the type of the condition of Probe. No authorizer returns it.
const probeCondition = "fieldperm.dev/health-check"

// Probe asks the endpoint of conditions once, without retries, about a condition that no authorizer has returned and an object that no API
// server stores. by is the user in the review. Probe returns nil if the endpoint answers in the dialect: with a review, whatever it decides, or
// with a refusal of the condition. A refusal has the code 400 or 422. It is a Status, or its text names the condition: this shows that the
// endpoint has read the review.
func (a *Authorizer) Probe(ctx context.Context, by string) error {
	decision := authorizer.ConditionsAwareDecisionConditionsMap(nil, nil, []authorizer.Condition{authorizer.GenericCondition{
		ID: probeCondition, Type: probeCondition, Condition: "false", Description: "asks whether this endpoint answers",
	}})
	of := &admissionv1.AdmissionRequest{
		UID: uuid.NewUUID(), Operation: admissionv1.Create, Name: "health-check", DryRun: ptr.To(true), UserInfo: authenticationv1.UserInfo{Username: by},
		Kind:     metav1.GroupVersionKind{Group: "fieldperm.dev", Version: "v1alpha1", Kind: "HealthCheck"},
		Resource: metav1.GroupVersionResource{Group: "fieldperm.dev", Version: "v1alpha1", Resource: "healthchecks"},
		Object:   runtime.RawExtension{Raw: []byte(`{"apiVersion":"fieldperm.dev/v1alpha1","kind":"HealthCheck","metadata":{"name":"health-check"}}`)},
	}
	of.RequestKind, of.RequestResource = &of.Kind, &of.Resource
	body, err := a.config.Dialect.AskConditions(wire.ConditionsRequest{Decision: decision, Admission: of})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, a.config.Timeout)
	defer cancel()
	answer, err := a.conditions.once(ctx, body).Raw()
	if err == nil {
		_, err = a.config.Dialect.ReadConditionsAnswer(answer, of.UID)
		return err
	}
	code, text := refusalOf(err, answer)
	switch {
	case (code == http.StatusBadRequest || code == http.StatusUnprocessableEntity) && (strings.Contains(text, probeCondition) || isStatus(answer)):
		return nil
	case text != "":
		return fmt.Errorf("%w: %q", err, shorten.Within(text, maxText))
	}
	return err
}

// maxText is how much of a refusal an error quotes, in bytes.
const maxText = 256

// refusalOf returns the HTTP status and the text of an answer that is no success, 0 and "" if there is no answer. body is the answer if it is JSON.
func refusalOf(err error, body []byte) (code int32, text string) {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return 0, ""
	}
	status := answer.Status()
	if len(body) == 0 && status.Details != nil {
		for _, cause := range status.Details.Causes {
			// client-go puts the text of an answer here that is no JSON.
			text += cause.Message
		}
		return status.Code, strings.TrimSpace(text)
	}
	return status.Code, strings.TrimSpace(string(body))
}

// isStatus reports whether an answer is the Status of a failure.
func isStatus(body []byte) bool {
	var sent metav1.Status
	return json.Unmarshal(body, &sent) == nil && sent.Kind == "Status" && sent.APIVersion == "v1" && sent.Status == metav1.StatusFailure
}
