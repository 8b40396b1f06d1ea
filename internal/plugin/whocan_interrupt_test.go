package plugin

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fieldperm/fieldperm/internal/access"
	"github.com/fieldperm/fieldperm/test/fakeapi"
)

// An interrupt while bindings are read leaves the subjects of those that were read, and an answer that is not complete.
func TestWhoCanInterruptLeavesWhatWasRead(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	bindings := &rbacv1.ClusterRoleBindingList{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRoleBindingList"}, Items: []rbacv1.ClusterRoleBinding{{
		ObjectMeta: metav1.ObjectMeta{Name: "b"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "r"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "ann"}},
	}}}
	roles := &rbacv1.ClusterRoleList{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRoleList"}, Items: []rbacv1.ClusterRole{{
		ObjectMeta: metav1.ObjectMeta{Name: "r"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"update"}}},
	}}}
	empty := &rbacv1.RoleList{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "RoleList"}}
	server := fakeapi.Plain(t, http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		var answer any
		switch {
		case strings.HasSuffix(in.URL.Path, "/clusterroles"):
			answer = roles
		case strings.HasSuffix(in.URL.Path, "/clusterrolebindings"):
			answer = bindings
		case strings.HasSuffix(in.URL.Path, "/roles"):
			answer = empty
		case strings.HasSuffix(in.URL.Path, "/rolebindings"):
			interrupt()
			<-in.Context().Done()
			return
		default:
			http.NotFound(out, in)
			return
		}
		fakeapi.JSON(out, http.StatusOK, answer)
	}))
	streams, _, _, errOut := genericiooptions.NewTestIOStreams()
	config := genericclioptions.NewConfigFlags(false)
	config.APIServer = &server.URL
	o := &whoCan{inquirer: inquirer{options: options{streams: streams, cluster: config}}}
	w := &access.Write{Verb: "update", Group: "apps", Version: "v1", Resource: "deployments", Namespace: "shop", TakesMarker: true}
	known := &traced{}
	cluster, err := o.grantsAbout(ctx, known, w, true)
	if err != nil {
		t.Fatal(err)
	}
	if rows := cluster.Holders(w, "update"); len(rows) != 1 || rows[0].Subject.Name != "ann" {
		t.Errorf("rows %+v", rows)
	}
	if err := o.incomplete(known); !errors.Is(err, ErrUnread) || ExitCode(err) != 2 || !strings.Contains(errOut.String(), "warning: the answer lacks subjects by some bindings: rolebindings: interrupted after 0: ask again") {
		t.Errorf("%v, %q", err, errOut)
	}
}
