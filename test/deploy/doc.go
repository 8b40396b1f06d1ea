// Package deploy tests what is installed: config with kustomize and charts/fieldperm with Helm render
// the same objects, a real API server takes them, fieldperm may do with them what it has to, and every
// flag in them exists. The programs are built from the module in tools.
package deploy
