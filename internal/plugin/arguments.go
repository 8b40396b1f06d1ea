package plugin

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// onObject runs a command with the arguments VERB and KIND/NAME, which may be two: KIND NAME, as in kubectl.
func onObject(run func(cmd *cobra.Command, verb, object string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		object := args[1]
		if len(args) == 3 {
			if strings.Contains(object, "/") || strings.Contains(args[2], "/") {
				return fmt.Errorf("%q and %q are two objects: name one, as KIND NAME or KIND/NAME", object, args[2])
			}
			object += "/" + args[2]
		}
		return run(cmd, args[0], object)
	}
}
