package admission

import (
	"encoding/json"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
)

// encodeReview returns the AdmissionReview with a response, as json.Marshal encodes it.
func encodeReview(response *admissionv1.AdmissionResponse) ([]byte, error) {
	if out, ok := appendAllowed(make([]byte, 0, usualAnswer), response); ok {
		return out, nil
	}
	answer := admissionv1.AdmissionReview{Response: response}
	answer.APIVersion, answer.Kind = admissionVersion, "AdmissionReview"
	return json.Marshal(answer)
}

// usualAnswer is how many bytes most answers have at most.
const usualAnswer = 384

// appendAllowed appends the encoding of an AdmissionReview that allows a request and that has nothing but short annotations, as most answers. It
// reports false for any other.
func appendAllowed(out []byte, response *admissionv1.AdmissionResponse) ([]byte, bool) {
	if !response.Allowed || response.Result != nil || response.Patch != nil || response.PatchType != nil || response.Warnings != nil {
		return nil, false
	}
	out = append(out, `{"kind":"AdmissionReview","apiVersion":"`+admissionVersion+`","response":{"uid":`...)
	out, ok := appendText(out, string(response.UID))
	if !ok {
		return nil, false
	}
	out = append(out, `,"allowed":true`...)
	if len(response.AuditAnnotations) > 0 {
		var few [8]string
		keys := few[:0]
		for key := range response.AuditAnnotations {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		before := `,"auditAnnotations":{`
		for _, key := range keys {
			out = append(out, before...)
			if out, ok = appendText(out, key); !ok {
				return nil, false
			}
			out = append(out, ':')
			if out, ok = appendText(out, response.AuditAnnotations[key]); !ok {
				return nil, false
			}
			before = ","
		}
		out = append(out, '}')
	}
	return append(out, "}}"...), true
}

// accessAnswer is a SubjectAccessReview without what the caller knows: an API server reads only the status.
type accessAnswer struct {
	Kind       string                                    `json:"kind"`
	APIVersion string                                    `json:"apiVersion"`
	Status     authorizationv1.SubjectAccessReviewStatus `json:"status"`
}

// encodeAccess returns the SubjectAccessReview with a status, as json.Marshal encodes it.
func encodeAccess(status authorizationv1.SubjectAccessReviewStatus) ([]byte, error) {
	if out, ok := appendAccess(make([]byte, 0, usualAnswer), status); ok {
		return out, nil
	}
	return json.Marshal(accessAnswer{accessKind, authorizationVersion, status})
}

// appendAccess appends the encoding of a SubjectAccessReview that does not deny. It reports false for any other, and for unusual texts.
func appendAccess(out []byte, status authorizationv1.SubjectAccessReviewStatus) (_ []byte, ok bool) {
	if status.Denied || status.EvaluationError != "" {
		return nil, false
	}
	out = append(out, `{"kind":"`+accessKind+`","apiVersion":"`+authorizationVersion+`","status":{"allowed":`...)
	if status.Allowed {
		out = append(out, "true"...)
	} else {
		out = append(out, "false"...)
	}
	if status.Reason != "" {
		if out, ok = appendText(append(out, `,"reason":`...), status.Reason); !ok {
			return nil, false
		}
	}
	return append(out, "}}"...), true
}

// appendText appends a string of printable ASCII as json.Marshal encodes it. It reports false for any other string, and for the characters that
// json.Marshal escapes for HTML.
func appendText(out []byte, text string) ([]byte, bool) {
	out = append(out, '"')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c < ' ' || c > '~' || c == '<' || c == '>' || c == '&':
			return nil, false
		default:
			out = append(out, c)
		}
	}
	return append(out, '"'), true
}
