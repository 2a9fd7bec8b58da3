package machine

import (
	"fmt"
	"reflect"

	"github.com/fxamacker/cbor/v2"
)

// Events are stored as canonical CBOR: one encoding per value, so that a
// digest over stored bytes is a digest over the value. File names and outputs
// need not be UTF-8: such strings are read back as they are. The json tags name the
// fields in both encodings.
var (
	encMode = func() cbor.EncMode {
		o := cbor.CoreDetEncOptions()
		o.TextMarshaler = cbor.TextMarshalerNone
		m, err := o.EncMode()
		if err != nil {
			panic(err)
		}
		return m
	}()
	decMode = func() cbor.DecMode {
		m, err := cbor.DecOptions{MaxNestedLevels: 16, MaxArrayElements: 1 << 20, UTF8: cbor.UTF8DecodeInvalid}.DecMode()
		if err != nil {
			panic(err)
		}
		return m
	}()
)

// Encode returns the canonical bytes of any plain value of this package.
func Encode(v any) ([]byte, error) {
	b, err := encMode.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return b, nil
}

// DecodeValue reads what Encode wrote into v, a pointer.
func DecodeValue(b []byte, v any) error {
	if err := decMode.Unmarshal(b, v); err != nil {
		return fmt.Errorf("decode %T: %w", v, err)
	}
	return nil
}

// Decode reads the body of an event of the given kind. An unknown kind is an
// error: a ledger of a newer Pawl is not guessed at.
func Decode(kind string, payload []byte) (Body, error) {
	t, ok := kinds[kind]
	if !ok {
		return nil, fmt.Errorf("machine: unknown event kind %q: this ledger was written by a newer pawl", kind)
	}
	p := reflect.New(t)
	if err := DecodeValue(payload, p.Interface()); err != nil {
		return nil, fmt.Errorf("event %s: %w", kind, err)
	}
	return p.Elem().Interface().(Body), nil
}

// Kinds lists every event kind.
func Kinds() []string {
	out := make([]string, 0, len(kinds))
	for k := range kinds {
		out = append(out, k)
	}
	return out
}

var kinds = func() map[string]reflect.Type {
	m := map[string]reflect.Type{}
	for _, b := range []Body{
		RunCreated{},
		RunClaimed{},
		WorkspaceReady{},
		WorkspaceChanged{},
		WorkspaceRestored{},
		WorkspaceRebuilt{},
		TurnRequested{},
		TurnHeld{},
		WindowOpened{},
		NoteWritten{},
		MemoryKept{},
		MemoryForgotten{},
		MemoryRead{},
		TurnResponded{},
		TurnFailed{},
		EffectRefused{},
		EffectIntended{},
		EffectCancelled{},
		ApprovalRequested{},
		ApprovalGranted{},
		ApprovalDenied{},
		ApprovalClosed{},
		EffectDispatched{},
		AttemptStarted{},
		EffectCompleted{},
		SnapshotTaken{},
		EffectRejected{},
		EffectAmbiguous{},
		QuiescenceProven{},
		EvidenceAdded{},
		EffectSettled{},
		EffectForced{},
		EffectAbandoned{},
		ProbeAsked{},
		CompensationAsked{},
		CompensationEnded{},
		RollbackAsked{},
		RollbackEnded{},
		QuestionAsked{},
		QuestionAnswered{},
		PlanUpdated{},
		DecisionRecorded{},
		Told{},
		RunPaused{},
		RunUnpaused{},
		RunCancelled{},
		RunFinished{},
		RunFailed{},
		LandAsked{},
		ChildSpawned{},
		ChildReported{},
		ChildReviewed{},
		ChildResumed{},
		ChildFunded{},
		MessageReceived{},
		GrantAdded{},
		GrantRevoked{},
		PolicyTrusted{},
		PolicyDistrusted{},
		PolicyAdopted{},
	} {
		m[b.Kind()] = reflect.TypeOf(b)
	}
	return m
}()

// Kind names the event.
func (RunCreated) Kind() string { return "RunCreated" }

// Kind names the event.
func (RunClaimed) Kind() string { return "RunClaimed" }

// Kind names the event.
func (WorkspaceReady) Kind() string { return "WorkspaceReady" }

// Kind names the event.
func (WorkspaceChanged) Kind() string { return "WorkspaceChanged" }

// Kind names the event.
func (WorkspaceRestored) Kind() string { return "WorkspaceRestored" }

// Kind names the event.
func (WorkspaceRebuilt) Kind() string { return "WorkspaceRebuilt" }

// Kind names the event.
func (TurnRequested) Kind() string { return "TurnRequested" }

// Kind names the event.
func (TurnResponded) Kind() string { return "TurnResponded" }

// Kind names the event.
func (TurnFailed) Kind() string { return "TurnFailed" }

// Kind names the event.
func (EffectRefused) Kind() string { return "EffectRefused" }

// Kind names the event.
func (EffectIntended) Kind() string { return "EffectIntended" }

// Kind names the event.
func (EffectCancelled) Kind() string { return "EffectCancelled" }

// Kind names the event.
func (ApprovalRequested) Kind() string { return "ApprovalRequested" }

// Kind names the event.
func (ApprovalGranted) Kind() string { return "ApprovalGranted" }

// Kind names the event.
func (ApprovalDenied) Kind() string { return "ApprovalDenied" }

// Kind names the event.
func (ApprovalClosed) Kind() string { return "ApprovalClosed" }

// Kind names the event.
func (EffectDispatched) Kind() string { return "EffectDispatched" }

// Kind names the event.
func (AttemptStarted) Kind() string { return "AttemptStarted" }

// Kind names the event.
func (EffectCompleted) Kind() string { return "EffectCompleted" }

// Kind names the event.
func (EffectRejected) Kind() string { return "EffectRejected" }

// Kind names the event.
func (EffectAmbiguous) Kind() string { return "EffectAmbiguous" }

// Kind names the event.
func (QuiescenceProven) Kind() string { return "QuiescenceProven" }

// Kind names the event.
func (EvidenceAdded) Kind() string { return "EvidenceAdded" }

// Kind names the event.
func (EffectSettled) Kind() string { return "EffectSettled" }

// Kind names the event.
func (EffectForced) Kind() string { return "EffectForced" }

// Kind names the event.
func (EffectAbandoned) Kind() string { return "EffectAbandoned" }

// Kind names the event.
func (ProbeAsked) Kind() string { return "ProbeAsked" }

// Kind names the event.
func (CompensationAsked) Kind() string { return "CompensationAsked" }

// Kind names the event.
func (CompensationEnded) Kind() string { return "CompensationEnded" }

// Kind names the event.
func (QuestionAsked) Kind() string { return "QuestionAsked" }

// Kind names the event.
func (QuestionAnswered) Kind() string { return "QuestionAnswered" }

// Kind names the event.
func (PlanUpdated) Kind() string { return "PlanUpdated" }

// Kind names the event.
func (DecisionRecorded) Kind() string { return "DecisionRecorded" }

// Kind names the event.
func (Told) Kind() string { return "Told" }

// Kind names the event.
func (RunPaused) Kind() string { return "RunPaused" }

// Kind names the event.
func (RunUnpaused) Kind() string { return "RunUnpaused" }

// Kind names the event.
func (RunCancelled) Kind() string { return "RunCancelled" }

// Kind names the event.
func (RunFinished) Kind() string { return "RunFinished" }

// Kind names the event.
func (RunFailed) Kind() string { return "RunFailed" }

// Kind names the event.
func (LandAsked) Kind() string { return "LandAsked" }

// Kind names the event.
func (SnapshotTaken) Kind() string { return "SnapshotTaken" }

// Kind names the event.
func (RollbackAsked) Kind() string { return "RollbackAsked" }

// Kind names the event.
func (RollbackEnded) Kind() string { return "RollbackEnded" }

// Kind names the event.
func (TurnHeld) Kind() string { return "TurnHeld" }

// Kind names the event.
func (WindowOpened) Kind() string { return "WindowOpened" }

// Kind names the event.
func (NoteWritten) Kind() string { return "NoteWritten" }

// Kind names the event.
func (MemoryKept) Kind() string { return "MemoryKept" }

// Kind names the event.
func (MemoryForgotten) Kind() string { return "MemoryForgotten" }

// Kind names the event.
func (MemoryRead) Kind() string { return "MemoryRead" }
