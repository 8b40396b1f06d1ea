package schema

import (
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func requestOf(user, object string) *admissionv1.AdmissionRequest {
	return &admissionv1.AdmissionRequest{UserInfo: authenticationv1.UserInfo{Username: user}, Object: runtime.RawExtension{Raw: []byte(object)}}
}
