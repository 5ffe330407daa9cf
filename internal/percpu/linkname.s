// An assembly file lets the package declare functions without a body.
