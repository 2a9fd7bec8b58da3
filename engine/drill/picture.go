package drill

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// Pictures are the curves of a comparison as SVG, by file name.
func (c *Comparison) Pictures() map[string]string {
	return map[string]string{
		"recovery-break-even.svg": c.breakEvenPicture(),
		"recovery-sweep.svg":      c.sweepPicture(),
	}
}

// curve is one line of a picture.
type curve struct {
	name   string
	points [][2]float64
	bold   bool
}

// hues are told apart without colour too: each line has its own dashes.
var hues = []struct{ colour, dash string }{
	{"#8c564b", "2 3"},
	{"#d62728", "6 3"},
	{"#7f7f7f", "1 2"},
	{"#bcbd22", "8 2 2 2"},
	{"#9467bd", "4 4"},
	{"#ff7f0e", "10 4"},
	{"#17becf", "3 1"},
	{"#2ca02c", "12 3 3 3"},
	{"#1f77b4", ""},
}

// breakEvenPicture: what 100 ambiguous effects cost, in questions, over what
// one wrong outcome costs, in questions. Both axes are logarithmic.
func (c *Comparison) breakEvenPicture() string {
	var curves []curve
	for _, st := range Strategies() {
		wrong, asked, t := c.totals(c.Cells, st, "honest", 0.5)
		if t.Effects == 0 {
			continue
		}
		x := curve{name: string(st), bold: st == ClassPolicy}
		for i := 0; i <= 40; i++ {
			ratio := math.Pow(10, -1+4*float64(i)/40)
			x.points = append(x.points, [2]float64{ratio, math.Max(wrong*ratio+asked, 1)})
		}
		curves = append(curves, x)
	}
	return draw("Cost of 100 effects without a recorded end", "one wrong outcome costs as much as … questions", "cost, in questions", curves, true)
}

// sweepPicture: wrong outcomes over the share of ambiguous attempts that landed.
func (c *Comparison) sweepPicture() string {
	var curves []curve
	for _, st := range Strategies() {
		x := curve{name: string(st), bold: st == ClassPolicy}
		for i := range sweepSteps + 1 {
			p := float64(i) / sweepSteps
			wrong, _, t := c.totals(c.Sweep, st, "sweep", p)
			if t.Effects > 0 {
				x.points = append(x.points, [2]float64{p, wrong})
			}
		}
		if len(x.points) > 0 {
			curves = append(curves, x)
		}
	}
	return draw("Wrong outcomes per 100 effects without a recorded end", "share of them that had happened (p)", "wrong outcomes", curves, false)
}

// draw makes an SVG of curves; logs: both axes are logarithmic.
func draw(title, xName, yName string, curves []curve, logs bool) string {
	const w, h, left, right, top, bottom = 760, 420, 70, 190, 40, 50
	scale := func(v float64) float64 {
		if logs {
			return math.Log10(v)
		}
		return v
	}
	x0, x1, y0, y1 := math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for _, c := range curves {
		for _, p := range c.points {
			x0, x1 = math.Min(x0, scale(p[0])), math.Max(x1, scale(p[0]))
			y0, y1 = math.Min(y0, scale(p[1])), math.Max(y1, scale(p[1]))
		}
	}
	if !logs {
		y0 = 0
	}
	if x1 <= x0 {
		x1 = x0 + 1
	}
	if y1 <= y0 {
		y1 = y0 + 1
	}
	at := func(p [2]float64) (float64, float64) {
		return left + (scale(p[0])-x0)/(x1-x0)*(w-left-right), h - bottom - (scale(p[1])-y0)/(y1-y0)*(h-top-bottom)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12" role="img">`+"\n", w, h)
	fmt.Fprintf(&b, "<title>%s</title>\n<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n", html.EscapeString(title), w, h)
	fmt.Fprintf(&b, `<text x="%d" y="20" font-size="14" font-weight="bold">%s</text>`+"\n", left, html.EscapeString(title))
	for i := 0; i <= 4; i++ {
		fx, fy := x0+(x1-x0)*float64(i)/4, y0+(y1-y0)*float64(i)/4
		px := left + float64(i)/4*(w-left-right)
		py := h - bottom - float64(i)/4*(h-top-bottom)
		fmt.Fprintf(&b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#dddddd"/>`+"\n", left, py, w-right, py)
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", px, h-bottom+18, tick(fx, logs))
		fmt.Fprintf(&b, `<text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", left-6, py+4, tick(fy, logs))
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", (left+w-right)/2, h-12, html.EscapeString(xName))
	fmt.Fprintf(&b, `<text transform="translate(16 %d) rotate(-90)" text-anchor="middle">%s</text>`+"\n", (top+h-bottom)/2, html.EscapeString(yName))
	for i, c := range curves {
		hue := hues[hueOf(c.name)%len(hues)]
		var path strings.Builder
		for j, p := range c.points {
			x, y := at(p)
			fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(j, 1)], x, y)
		}
		width := 1.6
		if c.bold {
			width = 3.2
		}
		fmt.Fprintf(&b, `<path d="%s" fill="none" stroke="%s" stroke-width="%.1f" stroke-dasharray="%s"/>`+"\n", path.String(), hue.colour, width, hue.dash)
		ly := top + 10 + 20*i
		fmt.Fprintf(&b, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s" stroke-width="%.1f" stroke-dasharray="%s"/>`+"\n", w-right+14, ly, w-right+48, ly, hue.colour, width, hue.dash)
		fmt.Fprintf(&b, `<text x="%d" y="%d">%s</text>`+"\n", w-right+54, ly+4, html.EscapeString(c.name))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func hueOf(name string) int {
	for i, st := range Strategies() {
		if string(st) == name {
			return i
		}
	}
	return 0
}

func tick(v float64, logs bool) string {
	if logs {
		v = math.Pow(10, v)
	}
	switch {
	case v >= 1000:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.2g", v)
}
