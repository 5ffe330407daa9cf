//go:build schemas

package main

// The schemas of the Kubernetes API, which a test reads as files.
import _ "k8s.io/client-go/openapi/openapitest"
