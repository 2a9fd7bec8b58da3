package shot

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"
)

func TestPictureHoldsTextColourAndWideCharacters(t *testing.T) {
	svg := SVG([]string{"\x1b[1;38;2;255;0;0mred\x1b[m <&>", "日本\x1b[7mrev\x1b[m "}, 9, "#000000", "#ffffff")
	for _, want := range []string{`fill="#ff0000" font-weight="bold">r<`, `>&lt;<`, `>&amp;<`, `>日<`, `fill="#ffffff" shape-rendering`} {
		if !strings.Contains(svg, want) {
			t.Errorf("the picture lacks %s:\n%s", want, svg)
		}
	}
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		if _, err := d.Token(); err == io.EOF {
			return
		} else if err != nil {
			t.Fatalf("not XML: %v", err)
		}
	}
}
