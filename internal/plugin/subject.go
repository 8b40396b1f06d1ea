package plugin

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
)

// subject returns the user that the answer is about: that of --as, else that of the kubeconfig.
func (o *options) subject(ctx context.Context) (user.Info, error) {
	if o.as != "" {
		u := o.userInfo()
		return &user.DefaultInfo{Name: u.Username, Groups: u.Groups}, nil
	}
	config, err := o.config()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cluster: %w: correct --kubeconfig and --context", err)
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("user of the kubeconfig: %w: give --as", err)
	}
	u := review.Status.UserInfo
	out := &user.DefaultInfo{Name: u.Username, UID: u.UID, Groups: u.Groups, Extra: map[string][]string{}}
	for key, values := range u.Extra {
		out.Extra[key] = values
	}
	return out, nil
}
