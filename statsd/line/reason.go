package line

// Reason is why a line is rejected. The zero value, OK, means that it is not.
type Reason uint8

// The reasons. Those after OutOfRange do not depend on the text of one line
// alone; they are reported by the readers of packets and streams and by the
// code that applies lines.
const (
	OK Reason = iota
	LineTooLong
	InvalidUTF8
	BadEvent
	BadServiceCheck
	MissingColon
	EmptyName
	MissingPipe
	NameTooLong
	TooManySegments
	BadType
	BadSampleRate
	MixedTagStyles
	TooManyTags
	TagTooLong
	EmptyValue
	NotFinite
	BadValue
	NegativeCounter
	NegativeTimer
	OutOfRange
	TooManyLines
	Truncated
	BadFrame
	TypeConflict

	// Reasons is the number of reasons, OK included.
	Reasons = int(TypeConflict) + 1
)

var reasonNames = [Reasons]string{
	OK:              "ok",
	LineTooLong:     "line_too_long",
	InvalidUTF8:     "invalid_utf8",
	BadEvent:        "bad_event",
	BadServiceCheck: "bad_service_check",
	MissingColon:    "missing_colon",
	EmptyName:       "empty_name",
	MissingPipe:     "missing_pipe",
	NameTooLong:     "name_too_long",
	TooManySegments: "too_many_segments",
	BadType:         "bad_type",
	BadSampleRate:   "bad_sample_rate",
	MixedTagStyles:  "mixed_tag_styles",
	TooManyTags:     "too_many_tags",
	TagTooLong:      "tag_too_long",
	EmptyValue:      "empty_value",
	NotFinite:       "not_finite",
	BadValue:        "bad_value",
	NegativeCounter: "negative_counter",
	NegativeTimer:   "negative_timer",
	OutOfRange:      "out_of_range",
	TooManyLines:    "too_many_lines",
	Truncated:       "truncated",
	BadFrame:        "bad_frame",
	TypeConflict:    "type_conflict",
}

// String returns the word for r in metrics and messages.
func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "unknown"
}
