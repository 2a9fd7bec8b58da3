package confine

import (
	"slices"
	"testing"
)

func TestWithheld(t *testing.T) {
	got := Withheld([]string{"PATH=/bin", "NVM_DIR=/n", "PYENV_ROOT=/p", "ASDF_DIR=/a", "GOROOT=/g", "AWS_SECRET_ACCESS_KEY=x", "GITHUB_TOKEN=y", "GITHUB_TOKEN=z", "=odd", "LANG=C"})
	if want := []string{"AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN"}; !slices.Equal(got, want) {
		t.Errorf("withheld %v, want %v", got, want)
	}
}
