package window

import (
	"strings"
	"testing"

	"pawl/engine/machine"
)

// A key in what a tool printed does not reach the model; that there was one does.
func TestKeysDoNotReachTheModel(t *testing.T) {
	secret := strings.Repeat("q7W", 12)
	out, _, err := showOutput(machine.Text{Inline: "TOKEN=ghp_" + secret + "\nok\n"}, noBlobs{}, OutputLimit)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out, secret) || !strings.Contains(out, "1 keys in it are masked") || !strings.Contains(out, "ok") {
		t.Errorf("the model is shown %q", out)
	}
}
