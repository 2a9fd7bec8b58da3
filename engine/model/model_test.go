package model

import (
	"math"
	"net/http"
	"testing"
	"time"

	"pawl/engine/machine"
)

func TestCostCountsCachedTokensOnce(t *testing.T) {
	l := Limits{Priced: true, InPrice: 2, OutPrice: 10, CachedPrice: 0.5, MaxOutput: 100}
	if c := l.Cost(machine.Usage{Input: 1000, Cached: 400, Output: 50}); c != 600*2+400/2+50*10 {
		t.Errorf("cost is %d", c)
	}
	if c := l.Cost(machine.Usage{Input: 10, Cached: 400}); c != 5 { // a provider that counts them apart
		t.Errorf("more cached than sent costs %d", c)
	}
	if a := l.AtMost(1000, 0); a != 1000*2+100*10 {
		t.Errorf("at most is %d", a)
	}
	if a, b := l.AtMost(10, 50), l.AtMost(10, 5000); a != 520 || b != 1020 {
		t.Errorf("at most with a cap is %d and %d", a, b)
	}
	u := Limits{InPrice: 3}.Charge(machine.Usage{Input: 10})
	if u.Cost != 0 || !u.Estimated {
		t.Errorf("without a known price: %+v", u)
	}
}

func TestRetryAfterNeverOverflows(t *testing.T) {
	for _, v := range []string{"1e300", "NaN", "-5", "Inf", "99999999999999999999"} {
		h := http.Header{"Retry-After": {v}}
		if d := RetryAfter(h, time.Time{}); d < 0 || d > 366*24*time.Hour {
			t.Errorf("%s: %v", v, d)
		}
	}
	if d := bounded(math.Inf(1)); d != 365*24*time.Hour {
		t.Errorf("infinity is %v", d)
	}
}

func TestEveryFailureSaysWhatNext(t *testing.T) {
	for _, c := range []machine.FailClass{
		machine.FailLost, machine.FailCut, machine.FailRate, machine.FailOverload, machine.FailServer, machine.FailNetwork,
		machine.FailQuota, machine.FailAuth, machine.FailNotFound, machine.FailBadRequest, machine.FailContext,
		machine.FailScript, machine.FailEmpty,
	} {
		if Advice(c) == "" {
			t.Errorf("%s has no advice", c)
		}
	}
}
