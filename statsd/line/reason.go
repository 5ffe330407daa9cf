package line

// Reason says why a line was rejected. Its zero value, OK, says it was not.
type Reason uint8

// The reasons. Those after OutOfRange are not found in the text of one line:
// packet and stream readers, and the one who applies lines, give them.
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

// String returns the word for r that metrics and messages use.
func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "unknown"
}
