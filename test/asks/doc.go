// Package asks compares the answers of kubectl fieldperm with what the API server then does. It draws users, grants, barriers and policies,
// asks can-i, who-can and diff about fields of objects, and writes the fields as the users.
//
// Start at TestAsks. draw.go has what is drawn, field.go the fields with their values, and world_test.go the control plane. Nothing here
// knows how a command comes to its answer: the judge is the write.
package asks
