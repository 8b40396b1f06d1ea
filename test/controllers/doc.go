// Package controllers runs kube-controller-manager and kube-scheduler, unchanged, with granular verbs in place of update and patch.
// make test-controllers runs it. Start at TestControllers in controllers_test.go.
package controllers
