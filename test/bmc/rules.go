package bmc

import "net/http"

// BootRules are how a BMC's boot override differs from the specification.
type BootRules struct {
	// Mode is how the firmware treats BootSourceOverrideMode.
	Mode BootMode `json:"mode"`
	// Modes are the modes that are listed; empty: none are listed.
	Modes []string `json:"modes"`
	// Targets are the boot targets that the BMC offers; empty: None, Pxe, Hdd, Cd and UefiHttp.
	Targets []string `json:"targets"`
	// Enabled are the values of BootSourceOverrideEnabled that are listed; empty: none are listed and every one is accepted.
	Enabled []string `json:"enabled"`
	// Initial is the override that somebody has left behind.
	Initial Override `json:"initial"`
	// Settings describes the settings object of the system; nil: there is none.
	Settings *SettingsRules `json:"settings"`
	// PxeReadsAs is what the target Pxe reads back as in UEFI mode (Supermicro); empty: Pxe.
	PxeReadsAs string `json:"pxeReadsAs"`
	// AlwaysContinuous means that BootSourceOverrideEnabled is not stored and always reads Continuous (sushy-tools).
	AlwaysContinuous bool `json:"alwaysContinuous"`
	// Dropped means that an override is answered with 200, and reads back with the mode Legacy and disabled (AS-1015CS).
	Dropped bool `json:"dropped"`
	// NeedsTarget means that enabling an override while the target is None is refused (iLO).
	NeedsTarget bool `json:"needsTarget"`
	// ModeRefusal is the message of the refusal of a mode that cannot be written; empty: PropertyNotWritable.
	ModeRefusal string `json:"modeRefusal"`
	// LoadsAfter is how many reads of the system after each boot still have an empty Boot, because the BMC loads it when it is first read.
	LoadsAfter int `json:"loadsAfter"`
	// ShowsAfter is how many reads of the override after each change still show what was set before.
	ShowsAfter int `json:"showsAfter"`
	// Order is the persistent boot order; nil: Boot has none.
	Order *OrderRules `json:"order"`
	// SuccessBody answers a change with 200 and a body that has an error object with the message Success (iLO).
	SuccessBody bool `json:"successBody"`
	// HTTPBootURI is how HttpBootUri is treated.
	HTTPBootURI URIRule `json:"httpBootURI"`
	// Certificates is how the collection of certificates for HTTPS boot is treated.
	Certificates CertificateRule `json:"certificates"`
}

// URIRule is how a BMC treats HttpBootUri. Empty: its Boot has none.
type URIRule string

// Treatments of HttpBootUri.
const (
	// URITaken means that it can be set, and is null again after the boot that it was set for.
	URITaken URIRule = "Taken"
	// URIKept means that it can be set, and stays until somebody removes it.
	URIKept URIRule = "Kept"
	// URIDropped means that it is accepted and stays what it was.
	URIDropped URIRule = "Dropped"
	// URIRefused means that it is read-only. The refusal quotes the value.
	URIRefused URIRule = "Refused"
	// URIEmptyText means that null is refused: an empty text removes it.
	URIEmptyText URIRule = "EmptyText"
	// URIUnremovable means that it can be set and not be removed.
	URIUnremovable URIRule = "Unremovable"
)

// CertificateRule is how a BMC treats certificates for HTTPS boot. Empty: its Boot has no collection of them.
type CertificateRule string

// Treatments of certificates for HTTPS boot.
const (
	// CertificatesTaken means that they are added and shown with their text.
	CertificatesTaken CertificateRule = "Taken"
	// CertificatesFingerprinted means that they are added and shown by their fingerprint alone.
	CertificatesFingerprinted CertificateRule = "Fingerprinted"
	// CertificatesRefused means that adding one is answered with 400.
	CertificatesRefused CertificateRule = "Refused"
	// CertificatesDropped means that one is accepted and not listed.
	CertificatesDropped CertificateRule = "Dropped"
)

// Override is a boot source override. Empty members are Disabled, None and UEFI.
type Override struct {
	Enabled string `json:"enabled"`
	Target  string `json:"target"`
	Mode    string `json:"mode"`
}

// SettingsRules describe a system's settings object (@Redfish.Settings).
type SettingsRules struct {
	// Name is the last part of its path: SD, Settings.
	Name string `json:"name"`
	// Members is what its Boot holds.
	Members SettingsMembers `json:"members"`
	// RefusesOverride means that a change of the override is refused there and accepted at the system. Otherwise it is the other way round.
	RefusesOverride bool `json:"refusesOverride"`
	// Refusal is the message with which the other resource refuses a change; empty: PropertyNotWritable. A message that holds
	// FutureStateURI names the path of the settings object.
	Refusal string `json:"refusal"`
	// Unlinked means that the system does not link to the settings object.
	Unlinked bool `json:"unlinked"`
}

// SettingsMembers is what the Boot member of a settings object holds.
type SettingsMembers string

// Contents of a settings object's Boot.
const (
	// SettingsOverride means the override with what may be written. The system then lists nothing.
	SettingsOverride SettingsMembers = "Override"
	// SettingsTargets means the list of targets and the mode, without the override.
	SettingsTargets SettingsMembers = "Targets"
	// SettingsMode means the boot order and the mode only.
	SettingsMode SettingsMembers = "Mode"
)

// PowerRules are how a BMC's power actions differ.
type PowerRules struct {
	// Resets are the reset types that the BMC offers; empty: On, ForceOff, GracefulShutdown, GracefulRestart, ForceRestart and
	// PushPowerButton.
	Resets []Reset `json:"resets"`
	// ActionInfo lists the reset types in an ActionInfo resource and not in the action itself.
	ActionInfo bool `json:"actionInfo"`
	// PresentState is how a request for the power state that the server has is refused; empty: it is accepted.
	PresentState Refusal `json:"presentState"`
	// SettlingResets is how many requests to power on are refused with 409 after each power-off (iDRAC10).
	SettlingResets int `json:"settlingResets"`
}

// Refusal is an answer that is not a success.
type Refusal struct {
	Status int `json:"status"`
	// Message is the MessageId, without a registry for one of the Base registry.
	Message string `json:"message"`
}

// LoginRules are how a BMC's authentication differs.
type LoginRules struct {
	// Sessions is whether there are sessions.
	Sessions SessionService `json:"sessions"`
	// NoLocation leaves the Location header out when a session is made: only the body names the session.
	NoLocation bool `json:"noLocation"`
	// Redirect is the status with which a POST of a session is redirected to the same path with a slash at its end; 0: it is not.
	Redirect int `json:"redirect"`
	// MaxSessions is how many sessions there may be; 0: 16.
	MaxSessions int `json:"maxSessions"`
	// Context is what becomes of the member Context of a new session.
	Context SessionContext `json:"context"`
	// ContextRefusal is how a login with a Context is refused where Context is Refused; empty: 400 with PropertyUnknown.
	ContextRefusal Refusal `json:"contextRefusal"`
	// NoBasic refuses requests with Basic authentication.
	NoBasic bool `json:"noBasic"`
	// LimitRefusal is how one more session is refused; empty: 503 with SessionLimitExceeded.
	LimitRefusal Refusal `json:"limitRefusal"`
	// LimitRetryAfter is the header Retry-After of that refusal; empty: it has none.
	LimitRetryAfter string `json:"limitRetryAfter"`
}

// SessionContext is what a BMC does with the member Context of a new session. Empty: it is kept and shown (Session v1.5).
type SessionContext string

// BMCs that do not keep the Context.
const (
	// ContextDropped means that it is accepted and not kept.
	ContextDropped SessionContext = "Dropped"
	// ContextRefused means that a login with it is refused.
	ContextRefused SessionContext = "Refused"
)

// SessionService is whether a BMC has sessions. Empty: it has.
type SessionService string

// BMCs without sessions.
const (
	// SessionsAbsent means that the root has no link to sessions, and everything but the root needs Basic authentication (sushy-tools).
	SessionsAbsent SessionService = "Absent"
	// SessionsRefused means that the root links to sessions, and making one is answered with 405.
	SessionsRefused SessionService = "Refused"
	// SessionsDisabled means that the service of sessions is switched off, and that making one is answered with 403.
	SessionsDisabled SessionService = "Disabled"
)

// WireRules are how a BMC's requests, answers and links differ.
type WireRules struct {
	// Errors is the form of the errors.
	Errors ErrorForm `json:"errors"`
	// SlashLinks gives every link a slash at its end, and redirects requests without it with 308 (iLO 5).
	SlashLinks bool `json:"slashLinks"`
	// SystemByName redirects Systems/NAME of this name to the server's system with 307 (sushy-tools); empty: nothing is redirected.
	SystemByName string `json:"systemByName"`
	// FreezesAfter is how many requests within a minute the BMC survives. It answers none of the later ones, ever; 0: any number.
	FreezesAfter int `json:"freezesAfter"`
	// RefusesIfMatchOnActions answers an action with an If-Match header with 412 (iDRAC10).
	RefusesIfMatchOnActions bool `json:"refusesIfMatchOnActions"`
	// ByteOrderMark begins every body with UTF-8's byte-order mark.
	ByteOrderMark bool `json:"byteOrderMark"`
	// Empty is the path of a resource that is answered with 200 and no body; empty: none is.
	Empty string `json:"empty"`
	// TLS is the versions that the BMC speaks.
	TLS TLSRule `json:"tls"`
}

// TLSRule is which versions of TLS a BMC speaks. Empty: 1.2 and later.
type TLSRule string

// BMCs that speak no safe version.
const (
	// TLS10 and TLS11 mean that they speak these and none later, and refuse a client by an alert.
	TLS10 TLSRule = "1.0"
	TLS11 TLSRule = "1.1"
)

// ErrorForm is the form of a BMC's errors. Empty: an error object with an array of messages.
type ErrorForm string

// Forms of errors.
const (
	// ErrorObject has one message in place of an array of messages.
	ErrorObject ErrorForm = "Object"
	// ErrorTopLevel has the messages without an error object around them.
	ErrorTopLevel ErrorForm = "TopLevel"
	// ErrorNoMessage has MessageId and MessageArgs and no text (iLO).
	ErrorNoMessage ErrorForm = "NoMessage"
	// ErrorPlainText is text that is labelled JSON (sushy-tools).
	ErrorPlainText ErrorForm = "PlainText"
)

// BootMode is how a BMC treats BootSourceOverrideMode. Empty: the mode can be read and written.
type BootMode string

// Deviating boot modes.
const (
	// BootModeAbsent means that there is no BootSourceOverrideMode, and that sending it is an error (Supermicro X10).
	BootModeAbsent BootMode = "Absent"
	// BootModeReadOnly means that BootSourceOverrideMode can be read, and that sending it is an error.
	BootModeReadOnly BootMode = "ReadOnly"
	// BootModeFallsBack means that an override without a mode gets the mode Legacy (Supermicro).
	BootModeFallsBack BootMode = "FallsBack"
)

// ETag is how a BMC uses an ETag. Empty: there is none.
type ETag string

// Uses of an ETag.
const (
	// ETagOptional means that If-Match is checked where a request has it.
	ETagOptional ETag = "Optional"
	// ETagRequired means that a change without the current ETag in If-Match is refused: 428 without the header, 412 with another ETag.
	ETagRequired ETag = "Required"
	// ETagWeak means that the ETag is handed out weak, required, and compared as a strong one.
	ETagWeak ETag = "Weak"
	// ETagGzip means that the ETag is handed out with -gzip before its last quote, as some servers do under compression.
	ETagGzip ETag = "Gzip"
	// ETagBare means that the ETag is handed out without quotes and compared with them.
	ETagBare ETag = "Bare"
	// ETagStar means that no ETag is handed out, and that a change needs "If-Match: *".
	ETagStar ETag = "Star"
	// ETagRefused means that every If-Match is answered with 412.
	ETagRefused ETag = "Refused"
)

// Reset is a Redfish reset type.
type Reset string

// Reset types. A Machine is asked for the first six only.
const (
	ResetOn               Reset = "On"
	ResetForceOff         Reset = "ForceOff"
	ResetGracefulShutdown Reset = "GracefulShutdown"
	ResetGracefulRestart  Reset = "GracefulRestart"
	ResetForceRestart     Reset = "ForceRestart"
	ResetPushPowerButton  Reset = "PushPowerButton"
	ResetForceOn          Reset = "ForceOn"
	ResetPowerCycle       Reset = "PowerCycle"
	ResetFullPowerCycle   Reset = "FullPowerCycle"
)

var (
	defaultBootTargets = []string{"None", "Pxe", "Hdd", "Cd", "UefiHttp"}
	defaultResetTypes  = []Reset{ResetOn, ResetForceOff, ResetGracefulShutdown, ResetGracefulRestart, ResetForceRestart, ResetPushPowerButton}
)

// PSU501 is how iDRAC refuses a request for the power state that the server has.
var PSU501 = Refusal{Status: http.StatusConflict, Message: "IDRAC.1.6.PSU501"}

func (r BootRules) targets() []string {
	if len(r.Targets) > 0 {
		return r.Targets
	}
	return defaultBootTargets
}

func (r BootRules) enabledValues() []string {
	if len(r.Enabled) > 0 {
		return r.Enabled
	}
	return []string{"Disabled", "Once", "Continuous"}
}

func (r PowerRules) resetTypes() []Reset {
	if len(r.Resets) > 0 {
		return r.Resets
	}
	return defaultResetTypes
}
