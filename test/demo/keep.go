package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// trials are commands for a new user, with the objects that the stories leave.
const trials = `
  # As a user that may only scale:
  export KUBECONFIG=$users/scaler.kubeconfig
  kubectl scale deployment/web --replicas=7
  kubectl set image deployment/web web=web:9         # refused: the message says which verb it would take
  kubectl patch deployment web --dry-run=server -p '{"spec":{"paused":true}}'   # refused, and nothing is changed by trying

  # Ask about a change without making it:
  kubectl get deployment web -o yaml --show-managed-fields >old.yaml
  sed 's/ replicas: .*/ replicas: 9/; s/ image: .*/ image: web:9/' old.yaml >new.yaml
  KUBECONFIG=$users/admin.kubeconfig kubectl fieldperm review --old old.yaml --new new.yaml --as scaler

  # Grant what is missing, and try once more; what has been refused is remembered for up to 10 seconds:
  export KUBECONFIG=$users/admin.kubeconfig
  kubectl -n scale create role more --resource=deployments.apps --verb='granular:image(web)'
  kubectl -n scale create rolebinding more --role=more --user=scaler
  KUBECONFIG=$users/scaler.kubeconfig kubectl set image deployment/web web=web:9
`

// invite explains what a user can try on the running control plane.
func (p *printer) invite(st *stage, all []*Story) {
	dir := filepath.Dir(st.players[all[0].Users[0].short()].Kubeconfig)
	p.line("%s\n", p.paint(bold, "The control plane stays until Ctrl-C. In another terminal, copy this:"))
	p.line("  export PATH=%s:$PATH", st.path())
	p.line("  users=%s", dir)
	p.line(trials)
	p.line("%s\n", p.paint(bold, "Every user has a kubeconfig in $users, set to the namespace of its story:"))
	row := func(user, namespace, title string) {
		p.line("  %-50s %-16s %s", filepath.Base(user), namespace, p.paint(dim, title))
	}
	for _, story := range all {
		for _, player := range story.Users {
			row(st.players[player.short()].Kubeconfig, story.Name, story.Title)
		}
	}
	row("admin.kubeconfig", "default", "may everything")
	p.line("\nWhat was generated for the API server, fieldperm's log and the audit log are in %s", st.stack.Dir())
}

// path has kubectl, and kubectl-fieldperm as its plugin.
func (st *stage) path() string {
	return st.assets + string(os.PathListSeparator) + filepath.Join(st.root, "bin")
}

// keepAsked reports whether the environment asks to leave the control plane running, as make demo KEEP=1 does.
func keepAsked() bool {
	return !slices.Contains([]string{"", "0", "false", "no"}, strings.ToLower(os.Getenv("KEEP")))
}
