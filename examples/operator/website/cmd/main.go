// Command main runs the operator of websites.
package main

import (
	"flag"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	webv1 "github.com/fieldperm/fieldperm/examples/operator/website/api/v1"
	"github.com/fieldperm/fieldperm/examples/operator/website/internal/controller"
)

func main() {
	flag.Parse() // It has --kubeconfig of controller-runtime.
	ctrl.SetLogger(textlogger.NewLogger(textlogger.NewConfig()))
	if err := run(); err != nil {
		klog.ErrorS(err, "The operator has ended")
		os.Exit(1)
	}
}

func run() error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := webv1.AddToScheme(scheme); err != nil {
		return err
	}
	m, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	if err := (&controller.WebsiteReconciler{Client: m.GetClient()}).SetupWithManager(m); err != nil {
		return err
	}
	return m.Start(ctrl.SetupSignalHandler())
}
