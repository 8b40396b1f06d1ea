//go:build tools

package argorollouts

import _ "github.com/argoproj/argo-rollouts/cmd/rollouts-controller"
