package rbac

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// paged returns a client whose API server answers with pages of two Roles. failAt is the page that fails.
func paged(n, failAt int, fault error) (*fake.Clientset, *[]string) {
	client := fake.NewClientset()
	asked := &[]string{}
	client.PrependReactor("list", "roles", func(a clienttesting.Action) (bool, runtime.Object, error) {
		options := a.(clienttesting.ListActionImpl).ListOptions
		*asked = append(*asked, fmt.Sprintf("%s limit=%d continue=%s", a.GetNamespace(), options.Limit, options.Continue))
		page := len(*asked) - 1
		if page == failAt {
			return true, nil, fault
		}
		out := &rbacv1.RoleList{}
		for i := 2 * page; i < min(2*page+2, n); i++ {
			out.Items = append(out.Items, rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i)}})
		}
		if left := int64(n - 2*page - 2); left > 0 {
			out.Continue, out.RemainingItemCount = fmt.Sprint(page), &left
		}
		return true, out, nil
	})
	return client, asked
}

// Objects are visited once, page by page, with what the API server says of their number.
func TestVisitor_VisitsEachPageOnce(t *testing.T) {
	client, asked := paged(5, -1, nil)
	var totals []int64
	v := &Visitor{Client: client, Namespace: "shop", Total: func(kind string, n int64) {
		if kind == "Role" {
			totals = append(totals, n)
		}
	}}
	var got []string
	err := v.Roles(t.Context(), func(r *rbacv1.Role) error {
		got = append(got, r.Name)
		return nil
	})
	if err != nil || !slices.Equal(got, []string{"0", "1", "2", "3", "4"}) || !slices.Equal(totals, []int64{5, 5, 5}) {
		t.Errorf("%v, %q, totals %v", err, got, totals)
	}
	if !slices.Equal(*asked, []string{"shop limit=500 continue=", "shop limit=500 continue=0", "shop limit=500 continue=1"}) {
		t.Errorf("asked %q", *asked)
	}
}

// A list that expires is not begun anew, because objects would be visited twice.
func TestVisitor_AnExpiredListEnds(t *testing.T) {
	client, asked := paged(5, 1, apierrors.NewResourceExpired("too old"))
	visited := 0
	err := (&Visitor{Client: client}).Roles(t.Context(), func(*rbacv1.Role) error {
		visited++
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "try again") || len(*asked) != 2 || visited != 2 {
		t.Errorf("%v, asked %q, visited %d", err, *asked, visited)
	}
}

func TestVisitor_EndsWithAnErrorOfTheVisit(t *testing.T) {
	client, _ := paged(5, -1, nil)
	enough := errors.New("enough")
	if err := (&Visitor{Client: client}).Roles(t.Context(), func(*rbacv1.Role) error { return enough }); !errors.Is(err, enough) {
		t.Error(err)
	}
}
