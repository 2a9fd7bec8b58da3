package effect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"pawl/engine/machine"
)

// HTTPName is the name of the contract of an HTTP request.
const HTTPName = "http"

const httpVersion = 1

// ParamKeyHeader is the header in which a request carries its key.
const ParamKeyHeader = "key_header"

// Error codes of a request that prove that no byte of it left: the connection
// was never made, or the server's certificate was refused by us.
const (
	CodeRefused     = "connection_refused"
	CodeDNS         = "dns"
	CodeUnreachable = "unreachable"
	CodeCertificate = "tls_certificate"
	CodeDialTimeout = "connect_timeout"
)

// How long servers are taken to remember an idempotency key, and the part of
// it that is left unused.
const (
	keyMemory = 24 * time.Hour
	keyMargin = time.Hour
)

// HTTP is the contract of one request that Pawl sends itself: exactly one
// attempt, no redirect followed. keyHeader names the header that carries an
// idempotency key, "" if the server knows none. Contract.Key itself is for the
// caller to fill in.
//
// Methods that only read by their definition are READ. A method that changes
// something is KEYED with a key and IRREVERSIBLE without: PUT and DELETE too,
// since a second one can undo what somebody else did after the first.
func HTTP(method, url, keyHeader string) machine.Contract {
	method = strings.ToUpper(method)
	c := machine.Contract{
		Name: HTTPName, Version: httpVersion, Class: machine.ClassIrreversible, Sender: machine.SenderPawl, Network: true,
		InFlight: networkInFlight.Microseconds(),
		Params:   map[string]string{"method": method, "url": HideCredentials(url), "host": hostPort(url)},
	}
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		c.Class, c.InFlight = machine.ClassRead, 0
		return c
	}
	c.BeforeEffect = []string{CodeRefused, CodeDNS, CodeUnreachable, CodeCertificate, CodeDialTimeout}
	// The server, or something before it, gave up in the middle.
	c.ProvesNothing = []string{"408", "499", "500", "502", "503", "504", "507", "520", "522", "524"}
	if keyHeader != "" {
		c.Class = machine.ClassKeyed
		c.KeyHorizon = (keyMemory - keyMargin).Microseconds()
		c.Params[ParamKeyHeader] = keyHeader
	}
	return c
}

// HTTPError names the error of a request that followed no redirect. before is
// true only for codes that prove that nothing was sent; "" is the code of
// everything that proves nothing: a time-out while waiting, a reset, a
// connection that ended early.
func HTTPError(err error) (code string, before bool) {
	var (
		dns  *net.DNSError
		op   *net.OpError
		cert *tls.CertificateVerificationError
		auth x509.UnknownAuthorityError
		host x509.HostnameError
		bad  x509.CertificateInvalidError
	)
	dialing := errors.As(err, &op) && op.Op == "dial"
	switch {
	case err == nil:
		return "", false
	case errors.As(err, &cert), errors.As(err, &auth), errors.As(err, &host), errors.As(err, &bad):
		return CodeCertificate, true
	case errors.As(err, &dns) && dialing:
		return CodeDNS, true
	case !dialing:
		return "", false
	case errors.Is(err, syscall.ECONNREFUSED):
		return CodeRefused, true
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EADDRNOTAVAIL):
		return CodeUnreachable, true
	case op.Timeout(), errors.Is(err, syscall.ETIMEDOUT), errors.Is(err, context.DeadlineExceeded):
		return CodeDialTimeout, true
	}
	return "", false
}
