//go:build integration

package corpus

import "testing"

// TestCLI_OtherSteps runs the steps that TestCLI_Scenarios leaves out.
func TestCLI_OtherSteps(t *testing.T) {
	runScenariosByCLI(t, false)
}
