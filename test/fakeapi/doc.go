// Package fakeapi serves what a test needs of a Kubernetes API server, or of a webhook that fieldperm calls, in the process of the test.
//
// It is for unit tests, and for what a real API server cannot be made to do: to refuse, to be slow, to answer wrongly, to forget. A test
// of what an API server does uses a real one (test/cluster).
//
//	s := fakeapi.Serve(t, handler) // TLS; Plain is HTTP. It ends with the test.
//	client, err := kubernetes.NewForConfig(s.Config())
//
// A handler is put together from parts, each for one endpoint:
//
//	mux := fakeapi.Mux(lists...)                  // discovery of some resources, no OpenAPI, no CustomResourceDefinitions, no APIServices
//	mux.Handle("POST "+fakeapi.ReviewsPath, fakeapi.Reviews(decide))
//	mux.Handle("GET /apis/example.com/v1/things", fakeapi.Empty("example.com/v1", "Thing"))
//	mux.Handle("GET /version", fakeapi.Text(`{"gitVersion":"v1.37.2"}`))
//
// and answers with JSON, Status and Fail, which set the content type that clients expect. State and faults belong to the test.
//
// The package depends on nothing of fieldperm, so every test may import it.
package fakeapi
