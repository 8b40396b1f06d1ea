package browser

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// whoCan opens the page that the command makes of the files of its goldens.
func whoCan(t *testing.T, args ...string) *tab {
	t.Helper()
	command := filepath.Join(t.TempDir(), "kubectl-fieldperm")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-C", "../..", "-o", command, "./cmd/kubectl-fieldperm").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	run := exec.CommandContext(t.Context(), command, append([]string{"who-can", "-o", "html", "--grants", "whocan/grants.yaml"}, args...)...)
	run.Dir = "../../cmd/kubectl-fieldperm/testdata"
	content, err := run.Output()
	must(t, err)
	return openFile(t, content)
}

func TestWhoCan_ThePageOfTheCommandFiltersBySubject(t *testing.T) {
	p := whoCan(t, "update", "deployments", "-n", "shop")
	p.expect(`document.querySelector("h1").innerText`, "Subjects that may update deployments in shop")
	p.visit("#path=.spec.template.spec.containers%5B*%5D.image")
	p.contains(details, "Who may change it in all deployments of shop", "ServiceAccount ci/deployer", "granular:image by RoleBinding shop/images (Role shop/images)",
		"ServiceAccount mesh/injector", "only containerName proxy", "Group admins", "* by ClusterRoleBinding admins (ClusterRole everything)")
	p.visit("#path=.spec.replicas")
	p.contains(details, "Group editors", "User eve")
	p.picture("who-can")
	// The images of all lists of containers, and what leads there.
	p.visit("#subject=ServiceAccount%20ci/deployer")
	p.expect(`[...document.querySelectorAll(".row .name")].filter((n) => n.textContent === ".image").length`, "3")
	p.contains(treeText, ".image", "○ granular")
	p.contains(status, "1 subject passes the filter.")
	p.expect(`/\.replicas|\.status/.test(document.getElementById("tree").innerText)`, "false")
	// By hand, from the list of subjects.
	p.visit("")
	p.run(chromedp.Click(`//ul[@id="subjects"]//a[text()="User eve"]`))
	p.contains(treeText, ".spec", "● generic")
	p.expect(fragment, "#kind=apps/v1/Deployment&subject=User eve")
}
