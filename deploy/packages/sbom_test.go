package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xeipuuv/gojsonschema"
)

// TestBillOfMaterialsIsValid validates a bill of materials, of the modules that the test
// itself is built from, by the schema of CycloneDX.
func TestBillOfMaterialsIsValid(t *testing.T) {
	r := &release{root: ".", out: t.TempDir(), version: "v0.1.0", time: time.Unix(1763829137, 0).UTC()}
	schemas, err := r.output("go", "list", "-m", "-f", "{{.Dir}}/schema/", "github.com/CycloneDX/cyclonedx-go")
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	modules, err := r.modules(own)
	if err != nil {
		t.Fatal(err)
	}
	// Some modules of tests have licenses that the program's modules do not have.
	kept := modules[:0]
	for _, m := range modules {
		if id, err := m.license(); m.path == "std" || err == nil && id != "" {
			kept = append(kept, m)
		}
	}
	if err := r.billOfMaterials(target{"linux", "amd64"}, kept); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(r.out, "statsd-admin_0.1.0_linux_amd64.cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	const base = "http://cyclonedx.org/schema/"
	loader := gojsonschema.NewSchemaLoader()
	for name, file := range map[string]string{"spdx.schema.json": "spdx.schema.json", "jsf-0.82.schema.json": "jsf-0.82.schemax.json"} {
		if err := loader.AddSchema(base+name, gojsonschema.NewReferenceLoader("file://"+schemas+file)); err != nil {
			t.Fatal(err)
		}
	}
	// The parts for cryptography are not in the module, and not in the bill.
	if err := loader.AddSchema(base+"cryptography-defs.schema.json", gojsonschema.NewStringLoader(`{"definitions": {"algorithmFamiliesEnum": {}, "ellipticCurvesEnum": {}}}`)); err != nil {
		t.Fatal(err)
	}
	schema, err := loader.Compile(gojsonschema.NewReferenceLoader("file://" + schemas + "bom-1.7.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		text  string
		valid bool
	}{
		"as written":      {string(text), true},
		"unknown license": {strings.Replace(string(text), `"id": "MIT"`, `"id": "MITT"`, 1), false},
		"no name":         {strings.Replace(string(text), `"type": "library",`, "", 1), false},
	} {
		result, err := schema.Validate(gojsonschema.NewStringLoader(tt.text))
		if err != nil {
			t.Fatal(err)
		}
		if result.Valid() != tt.valid {
			t.Errorf("%s: valid: %t\n%v", name, result.Valid(), result.Errors())
		}
	}
}
