//go:build tools

package kustomizecontroller

import _ "github.com/fluxcd/kustomize-controller"
