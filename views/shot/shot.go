// Package shot turns a drawn frame into an SVG picture, for documentation and
// for looking at what a test drew. It holds no state and does no I/O.
package shot

import (
	"fmt"
	"html"
	"image/color"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/vt"
)

// Cell size in SVG units; the font is as wide as a cell.
const (
	cellW  = 8.43
	cellH  = 18
	fontPx = 14
)

// SVG draws rows of w cells with the given ground and default text colour,
// written "#rrggbb".
func SVG(rows []string, w int, ground, text string) string {
	h := len(rows)
	em := vt.NewEmulator(w, h)
	defer func() { _ = em.Close() }() // the emulator holds no resources but its own pipe
	// Frames are laid out by grapheme clusters.
	_, _ = em.WriteString("\x1b[?2027h\x1b[?7l" + strings.Join(rows, "\r\n")) // writes to memory
	return draw(em, w, h, ground, text)
}

// Screen is what SVG needs of a terminal: the emulators of x/vt have it.
type Screen interface {
	CellAt(x, y int) *uv.Cell
}

// Of draws what a terminal of w×h shows.
func Of(s Screen, w, h int, ground, text string) string { return draw(s, w, h, ground, text) }

func draw(s Screen, w, h int, ground, text string) string {
	var back, front strings.Builder
	for y := range h {
		for x := 0; x < w; x++ {
			c := s.CellAt(x, y)
			if c == nil || c.Width == 0 {
				continue
			}
			fg, bg := hex(c.Style.Fg, text), hex(c.Style.Bg, "")
			if c.Style.Attrs&uv.AttrReverse != 0 {
				if bg == "" {
					bg = ground
				}
				fg, bg = bg, fg
			}
			px, py := float64(x)*cellW, float64(y)*cellH
			if bg != "" {
				fmt.Fprintf(&back, `<rect x="%.2f" y="%.2f" width="%.2f" height="%d" fill="%s" shape-rendering="crispEdges"/>`+"\n", px, py, float64(c.Width)*cellW+0.2, cellH, bg)
			}
			if strings.TrimSpace(c.Content) == "" {
				continue
			}
			extra := ""
			if c.Style.Attrs&uv.AttrBold != 0 {
				extra += ` font-weight="bold"`
			}
			if c.Style.Attrs&uv.AttrItalic != 0 {
				extra += ` font-style="italic"`
			}
			if c.Style.Attrs&uv.AttrFaint != 0 {
				extra += ` opacity="0.6"`
			}
			if c.Style.Underline != 0 {
				extra += ` text-decoration="underline"`
			}
			fmt.Fprintf(&front, `<text x="%.2f" y="%.2f" fill="%s"%s>%s</text>`+"\n", px, py+13.5, fg, extra, html.EscapeString(c.Content))
		}
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" font-family="DejaVu Sans Mono, monospace" font-size="%d">
<rect width="100%%" height="100%%" fill="%s"/>
%s%s</svg>
`, float64(w)*cellW, h*cellH, fontPx, ground, back.String(), front.String())
}

func hex(c color.Color, or string) string {
	if c == nil {
		return or
	}
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)
}
