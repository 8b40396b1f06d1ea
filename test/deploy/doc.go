// Package deploy tests the installed objects: config with kustomize and charts/fieldperm with Helm render the same objects, a real API
// server accepts them, they give fieldperm the permissions that it needs, and every flag in them exists. The programs are built from the
// module in tools.
package deploy
