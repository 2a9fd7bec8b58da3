package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestScreenSection(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	text := "[screen]\ntheme = \"light\"\nsilent = true\n\n[screen.keys]\napprove = [\"y\"]\ndeny = []\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := Load(Options{Path: path, Getenv: func(string) string { return "" }})
	if c.Screen.Theme != "light" || !c.Screen.Silent || len(c.Screen.Keys) != 1 || c.Screen.Keys["approve"][0] != "y" {
		t.Errorf("the screen is %+v", c.Screen)
	}
	if len(c.Problems) != 1 || c.Problems[0].Line != 7 || !strings.Contains(c.Problems[0].Error(), "deny") {
		t.Errorf("problems %v", c.Problems)
	}
}
