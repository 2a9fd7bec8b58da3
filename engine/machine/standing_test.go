package machine

import (
	"errors"
	"testing"
)

// desk folds events of the desk's chain.
type deskStory struct {
	t *testing.T
	s Standing
}

func (d *deskStory) event(b Body) error {
	raw, err := Encode(b)
	if err != nil {
		d.t.Fatal(err)
	}
	back, err := Decode(b.Kind(), raw)
	if err != nil {
		d.t.Fatal(err)
	}
	next, err := FoldStanding(d.s, Event{N: d.s.Tail + 1, At: 1000 + d.s.Tail, Actor: ActorOperator + "ann", Body: back})
	if err == nil {
		d.s = next
	}
	return err
}

func (d *deskStory) do(bodies ...Body) {
	d.t.Helper()
	for _, b := range bodies {
		if err := d.event(b); err != nil {
			d.t.Fatalf("%s: %v", b.Kind(), err)
		}
	}
}

func TestStandingGrantsReachAsFarAsTheySay(t *testing.T) {
	d := &deskStory{t: t}
	d.do(
		GrantAdded{Grant: "g1", Rule: "git push origin *", Scope: GrantRun, Run: "r1"},
		GrantAdded{Grant: "g2", Rule: "npm publish", Scope: GrantProject, Run: "r1", Repo: "/p"},
	)
	r1, r2, r3 := &Charter{ID: "r1", Repo: "/p"}, &Charter{ID: "r2", Repo: "/p"}, &Charter{ID: "r3", Repo: "/q"}
	for _, tt := range []struct {
		grant string
		c     *Charter
		want  bool
	}{{"g1", r1, true}, {"g1", r2, false}, {"g2", r1, true}, {"g2", r2, true}, {"g2", r3, false}, {"g2", &Charter{ID: "r4"}, false}} {
		if got := d.s.Grant(tt.grant).Covers(tt.c); got != tt.want {
			t.Errorf("%s covers %s on %s: %v", tt.grant, tt.c.ID, tt.c.Repo, got)
		}
	}
	old := d.s
	d.do(GrantRevoked{Grant: "g2"})
	if d.s.Grant("g2").Covers(r1) || !old.Grant("g2").Covers(r1) {
		t.Error("a revoked grant holds, or revoking it changed an earlier state")
	}
	if d.s.NextGrant() != "g3" {
		t.Errorf("the next grant would be %s", d.s.NextGrant())
	}
}

func TestStandingRefusesWhatMustNotFollow(t *testing.T) {
	for name, tt := range map[string]struct {
		guard Guard
		b     Body
	}{
		"number":     {GuardNext, GrantAdded{Grant: "g3", Rule: "a", Scope: GrantRun, Run: "r1"}},
		"no rule":    {GuardApproval, GrantAdded{Grant: "g2", Scope: GrantRun, Run: "r1"}},
		"no run":     {GuardApproval, GrantAdded{Grant: "g2", Rule: "a", Scope: GrantRun}},
		"no project": {GuardApproval, GrantAdded{Grant: "g2", Rule: "a", Scope: GrantProject, Run: "r1"}},
		"no scope":   {GuardApproval, GrantAdded{Grant: "g2", Rule: "a", Run: "r1", Repo: "/p"}},
		"not there":  {GuardGrantOnce, GrantRevoked{Grant: "g7"}},
		"of a run":   {GuardFrom, RunPaused{}},
	} {
		d := &deskStory{t: t}
		d.do(GrantAdded{Grant: "g1", Rule: "a", Scope: GrantRun, Run: "r1"})
		var ge *GuardError
		if err := d.event(tt.b); !errors.As(err, &ge) || ge.Guard != tt.guard {
			t.Errorf("%s: %v, want guard %s", name, err, tt.guard)
		}
		if d.s.Tail != 1 {
			t.Errorf("%s: a refused event moved the state", name)
		}
	}
	d := &deskStory{t: t}
	d.do(GrantAdded{Grant: "g1", Rule: "a", Scope: GrantRun, Run: "r1"}, GrantRevoked{Grant: "g1"})
	if d.event(GrantRevoked{Grant: "g1"}) == nil {
		t.Error("a grant was revoked twice")
	}
}

func TestTrustIsInOneContent(t *testing.T) {
	d := &deskStory{t: t}
	a, b := DigestOf([]byte("a")), DigestOf([]byte("b"))
	d.do(PolicyTrusted{Path: "/p", Digest: a}, PolicyTrusted{Path: "/q", Digest: a}, PolicyTrusted{Path: "/p", Digest: b}, PolicyAdopted{Path: "/p", Digest: a}, PolicyAdopted{Path: "/p"})
	if got, ok := d.s.TrustedDigest("/p"); !ok || got != b {
		t.Errorf("trusted is %s, %v", got, ok)
	}
	if got, ok := d.s.AdoptedDigest("/p"); !ok || !got.IsZero() {
		t.Errorf("in force is %s, %v", got, ok)
	}
	d.do(PolicyDistrusted{Path: "/p"})
	if _, ok := d.s.TrustedDigest("/p"); ok {
		t.Error("still trusted")
	}
	if _, ok := d.s.TrustedDigest("/q"); !ok {
		t.Error("another file lost its trust")
	}
}

func TestApprovalExpires(t *testing.T) {
	y := begin(t)
	id := y.turn(postC, false)
	at := 1000 + y.s.Tail // of the next event
	y.do(ApprovalRequested{Approval: "r1.a1", Effect: id, Digest: y.s.Effect(id).Digest, Expires: at + 3})
	if a := Next(&y.s); a.Kind != ActWait || a.Later == nil || a.Later.Kind != ActExpire || a.Later.RetryAt != at+3 {
		t.Fatalf("next is %+v", a)
	}
	y.refused(GuardExpiry, ApprovalClosed{Approval: "r1.a1", State: ApprovalExpired})
	y.op(ApprovalGranted{Approval: "r1.a1", Digest: y.s.Effect(id).Digest}, Told{Text: "x"})
	y.refused(GuardExpiry, EffectDispatched{Effect: id, Attempt: 1, Approval: "r1.a1"})
	y.do(ApprovalClosed{Approval: "r1.a1", State: ApprovalExpired}, EffectCancelled{Effect: id, Reason: "expired"})
	if s := y.s.Approval("r1.a1").State; s != ApprovalExpired {
		t.Errorf("it is %s", s)
	}
	y.refused(GuardGrantOnce, ApprovalClosed{Approval: "r1.a1", State: ApprovalRevoked})
}

func TestBudgetsAreReservedAndExtended(t *testing.T) {
	start := func(c Charter) *story {
		y := &story{t: t}
		c.ID, c.Goal = "r1", "g"
		y.op(RunCreated{Charter: c})
		y.claim()
		y.do(WorkspaceReady{Path: "/w", Mode: "worktree"})
		return y
	}
	answer := func(y *story, limit string, n int64) {
		y.do(QuestionAsked{Question: y.s.NextQuestion(), Sort: SortBudget, Data: []byte(limit)})
		y.op(QuestionAnswered{Question: QuestionIDOf("r1", y.s.Questions.Len()), Answer: AnswerExtend, Number: n})
	}
	y := start(Charter{Budget: 100})
	y.refused(GuardBudget, TurnRequested{Turn: 1, Attempt: 1, Reserve: 101})
	y.do(TurnRequested{Turn: 1, Attempt: 1, Reserve: 60})
	y.claim() // the call is lost: it may have cost what was reserved
	if y.s.AtMost != 60 {
		t.Errorf("lost calls may have cost %d", y.s.AtMost)
	}
	y.refused(GuardBudget, TurnRequested{Turn: 1, Attempt: 2, Reserve: 60})
	answer(y, "budget", 20)
	y.do(TurnRequested{Turn: 1, Attempt: 2, Reserve: 60})

	y = start(Charter{MaxTokens: 100})
	y.refused(GuardBudget, TurnRequested{Turn: 1, Attempt: 1, Tokens: 101})
	y.do(TurnRequested{Turn: 1, Attempt: 1, Tokens: 100})
	y.claim()
	if over := y.s.OverBudget(0, 0, 0); over == nil || over.Limit != "tokens" {
		t.Errorf("lost calls took nothing: %+v", over)
	}
	answer(y, "tokens", 1)
	y.do(TurnRequested{Turn: 1, Attempt: 2, Tokens: 1})

	y = start(Charter{MaxWall: 50})
	if over := y.s.OverBudget(0, 0, y.s.Created+49); over != nil {
		t.Errorf("too early: %+v", over)
	}
	if over := y.s.OverBudget(0, 0, y.s.Created+50); over == nil || over.Limit != "wall" {
		t.Errorf("too late: %+v", over)
	}
	answer(y, "wall", 1000)
	if over := y.s.OverBudget(0, 0, y.s.Created+1000); over != nil {
		t.Errorf("extended, and still over: %+v", over)
	}
}
